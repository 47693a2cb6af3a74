"""What every provider is to the rest of the house: a way to open channels, and answers as values.

An answer says what is surely known about one message. Nothing else in the code knows a provider's name.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reply:
    """The provider's words: where in the dialogue they came, the code, and the text with all its lines."""

    # connect, mail, rcpt, data, body, end; request, response over HTTP; compose when the message could not be made
    phase: str
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
    wait_s: float | None = None  # not to be asked about or handed over again sooner, when the provider said so


@dataclass(frozen=True, slots=True)
class Trouble:
    """A channel can't be opened. It says nothing about any message: rows stay queued, attempts are not burnt."""

    reason: str
    # Wrong password or certificate: no use in trying every few seconds.
    is_lasting: bool = False


@dataclass(frozen=True, slots=True)
class Untouched:
    """Surely not taken over, and nothing was said about the message: at once again, no attempt counted.

    Either a kept connection was found dead, or the provider refuses us (`trouble`), whatever the message. A provider
    with an HTTP API says so after `finish` only, when the row is marked.
    """

    reason: str
    trouble: Trouble | None = None


Answer = Accepted | Deferred | Refused | NoAnswer | Untouched


@dataclass(frozen=True, slots=True)
class NotThere:
    """The provider's records don't know the message; proof only where its capabilities say so."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider could not be asked, or its answer says nothing."""

    reason: str


Finding = Accepted | NotThere | Unknown


class Idempotency(StrEnum):
    """What a provider makes of a key that it has met before."""

    NONE = "none"  # it knows no keys: a second hand-over is a second message
    REPLAY = "replay"  # it gives the first answer again
    REFUSE = "refuse"  # it refuses, which proves that the first was accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What recovery may count on. Times are seconds."""

    idempotency: Idempotency = Idempotency.NONE
    window_s: float = 0.0  # how long a key is remembered, as documented
    may_look_up: bool = False  # whether `find` can tell by our own tag
    settle_s: float = 60.0  # a look-up sooner than this after the hand-over may miss what was accepted
    horizon_s: float = 0.0  # how long the provider's records reach back
    is_absence_proof: bool = False  # whether NotThere proves that the message was not accepted
    has_reports: bool = False  # whether its reports carry our tag and so settle what is in doubt
    keeps_message_id: bool = False  # whether the recipient sees our Message-ID

    @property
    def may_settle(self) -> bool:
        """Whether a message without an answer can be settled without a person: by its key, or by a look-up."""
        return self.idempotency is not Idempotency.NONE or self.may_look_up

    @property
    def safe_window_s(self) -> float:
        """How long after the first hand-over the key may be used again: the window without a margin for clocks."""
        return max(0.0, self.window_s - max(60.0, self.window_s / 5))


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
    key: str = ""  # a UUID, the same in every attempt, for providers that honour one (providers/names.py)
    tag: str = ""  # leads from the provider's records and reports back to the send (providers/names.py)


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

    @property
    def can_follow(self) -> bool:
        """Whether a message can start behind another's terminator."""
        ...

    def follow(self, message: Message) -> bool:
        """Lets the message start behind the terminator that `finish` sends next; False when it has to `begin`.

        When the terminator's answer has come and the channel is still open, the channel carries this message: `hear`
        gives what has come for it already. When the channel has closed, the message surely was not handed over.
        """
        ...

    def hear(self, now: float) -> Answer | Ready | None:
        """Gives what is known from all that was read and not yet told."""
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
    """A way out for messages. All methods may be called from any thread."""

    name: str  # one in the whole installation; the key of its breaker and pace
    capabilities: Capabilities

    def connect(self) -> Channel | Trouble:
        """Opens a channel; may block up to the connect time-outs. Never raises for the network's sake."""
        ...

    def find(self, message: Message) -> Finding:
        """Looks the message up in the provider's records; blocks. Never raises for the network's sake."""
        ...

    def check(self) -> Trouble | None:
        """Gives what stands in the way of sending, as far as can be found out without a message; blocks."""
        ...
