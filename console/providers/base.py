"""What every provider is to the rest of the house: a way to open channels, and answers as values.

An answer says what is surely known about one message. Nothing else in the code knows a provider's name.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reply:
    """The provider's words: where in the dialogue they came, the code, and the text with all its lines."""

    phase: str  # connect, mail, rcpt, data, body, end; compose when the message could not be made
    code: int | None = None
    enhanced: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider has taken the message over."""

    reply: Reply
    provider_id: str | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """Surely not taken over; may be tried again, not before `wait_s` seconds when the provider asked for a wait."""

    reply: Reply
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Surely not taken over, and will not be."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Handed over, and nobody knows what became of it. Never the same as Deferred."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Trouble:
    """A channel can't be opened. It says nothing about any message: rows stay queued, attempts are not burnt."""

    reason: str
    # Wrong password or certificate: no use in trying every few seconds.
    is_lasting: bool = False


@dataclass(frozen=True, slots=True)
class Untouched:
    """Nothing was said about the message: at once again, no attempt counted.

    Either a kept connection was found dead, or the provider refuses us (`trouble`), whatever the message.
    """

    reason: str
    trouble: Trouble | None = None


Answer = Accepted | Deferred | Refused | NoAnswer | Untouched


@dataclass(frozen=True, slots=True)
class Ready:
    """All but the terminator is with the provider; the message may be handed over by `finish`."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one recipient, complete: the same bytes in every attempt."""

    mail_from: str
    rcpt_to: str
    wire: bytes  # CRLF line ends, ends with CRLF, dots not doubled
    needs_smtputf8: bool = False


class Channel(Protocol):
    """One connection with at most one message in it. Never blocks; times are seconds of time.monotonic()."""

    deadline: float  # when the present phase is out of time; infinity while nothing is awaited

    def fileno(self) -> int: ...

    @property
    def is_open(self) -> bool:
        """False when the connection is gone; the channel is then of no more use."""
        ...

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait for the socket to take them."""
        ...

    def begin(self, message: Message, now: float) -> Answer | Ready | None:
        """Starts a message; everything but the terminator follows by itself."""
        ...

    def advance(self, now: float) -> Answer | Ready | None:
        """Reads and writes what is possible without waiting."""
        ...

    def finish(self, now: float) -> Answer | None:
        """Hands the message over: sends the terminator."""
        ...

    def time_out(self) -> Answer | None:
        """Gives up on the present phase and closes."""
        ...

    def close(self) -> None:
        """Ends the connection at once; before the terminator that surely stops the message."""
        ...

    def quit(self) -> None:
        """Says good-bye without waiting, then closes."""
        ...


class Provider(Protocol):
    """A way out for messages."""

    name: str

    def connect(self) -> Channel | Trouble:
        """Opens a channel; may block up to the connect time-outs. Never raises for the network's sake."""
        ...
