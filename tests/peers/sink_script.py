"""What a test tells SINK to do, and what SINK tells about what it saw. Values only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Stage = Literal["CONNECT", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "DOT", "RSET", "NOOP", "QUIT"]
Then = Literal["go on", "close", "reset", "ignore", "half-close"]


class Accepted(NamedTuple):
    """A message that the server took: it answered 2yz to its dot, or a rule said that it took it without a word."""

    recipient: str
    message_id: str
    wire: bytes


class Data(NamedTuple):
    """A message whose final dot arrived, whatever the answer was."""

    recipient: str
    message_id: str
    wire: bytes
    connection: int
    at: float


@dataclass(slots=True)
class Event:
    """Something that the client did. `at` is time.monotonic(), `connection` counts from 1, `said` is as it came.

    `stage` is a stage of the dialogue, or IGNORED for what came on a line that is no longer listened to, or GONE for
    the client's end of the connection. `wire` is the message of a DOT, without stuffing. `reply` is what was answered.
    """

    at: float
    connection: int
    stage: str
    said: bytes = b""
    sender: str | None = None
    recipients: tuple[str, ...] = ()
    wire: bytes = b""
    reply: bytes = b""

    @property
    def recipient(self) -> str | None:
        """The first recipient, None before any is known."""
        return self.recipients[0] if self.recipients else None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What happens at a stage instead of the usual answer. The first rule of the script that fits is taken.

    Which: `recipient` fits at RCPT, DATA and DOT, at MAIL only if the client pipelines; `connection` is its number;
    `when` looks at the event. The first `skip` fits are passed over; after `times` fits the rule is used up;
    `times_each` counts for each recipient alone.

    What, in this order: `call` (in the connection's thread: the point is exact, other connections go on), `wait_s`,
    `reply`, `then`. A reply is text with one or several lines, or raw bytes, sent as they are. Without a reply the
    usual answer is given if the dialogue goes on, else nothing. `accepts` says whether a DOT's message counts as taken
    where the reply alone does not: `Rule(stage="DOT", then="close", accepts=True)` takes it and loses the answer.
    `then`: close (FIN), reset (RST), ignore (read on, never answer again), half-close (FIN, but read on, unanswered).
    """

    stage: Stage
    recipient: str | None = None
    connection: int | None = None
    when: Callable[[Event], bool] | None = None
    skip: int = 0
    times: int | None = None
    times_each: int | None = None
    call: Callable[[Event], object] | None = None
    wait_s: float = 0.0
    reply: str | bytes | None = None
    then: Then = "go on"
    accepts: bool | None = None

    def fits(self, event: Event) -> bool:
        """Whether the rule is about this event, counting aside."""
        return (
            self.stage == event.stage
            and (self.recipient is None or self.recipient.lower() in [each.lower() for each in event.recipients])
            and (self.connection is None or self.connection == event.connection)
            and (self.when is None or self.when(event))
        )


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What the server offers and demands. `users` (name to password) turns AUTH on and makes it a must."""

    extensions: tuple[str, ...] = ("PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES")
    tls: Literal["none", "starttls", "implicit"] = "none"
    certificate_name: str = "127.0.0.1"
    users: Mapping[str, str] = field(default_factory=dict)
    mechanisms: tuple[str, ...] = ("PLAIN", "LOGIN")
    connections_limit: int | None = None
