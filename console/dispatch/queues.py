"""What a pump needs of the queues that it claims from, and of what makes their messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from psycopg import Connection

from console.config import Settings
from console.dispatch.asker import Statement
from console.dispatch.recorder import Claimed, Position
from console.dispatch.work_store import Terms
from console.providers.base import Message
from console.providers.registry import OWN as OWN_PROVIDER


@dataclass(frozen=True, slots=True)
class Outlet:
    """Which messages go one way out: those whose route names this provider, of one account or (None) of all."""

    account_id: int | None
    provider: str  # its name in routes


OWN = Outlet(None, OWN_PROVIDER)


class Origin(NamedTuple):
    """Where a message comes from, for the log."""

    correlation_id: str
    trigger_source: str
    event: str
    message_type: str
    dedupe_key: str


class Composer(Protocol):
    """What makes the messages of claimed rows, and says how their answers are taken."""

    @property
    def job(self) -> Terms: ...

    def origin(self, claimed: Claimed) -> Origin: ...

    def compose(self, claimed: Claimed, settings: Settings) -> Message:
        """Makes the same bytes in every attempt. Raises: Unfillable with the reason, for this recipient alone."""
        ...


class Queue(Protocol):
    """Rows in the order in which they are due."""

    statement: ClassVar[Statement]
    after: Position
    swept_at: float
    rests_until: float

    @property
    def account_id(self) -> int: ...

    @property
    def campaign_id(self) -> int | None: ...

    def claim_values(
        self, *, worker_id: int, limit: int, slot: int, through_ids: Sequence[int]
    ) -> dict[str, str | int | float]:
        """Gives the values for a claim behind the place that was reached."""
        ...

    def composers(self, connection: Connection, rows: list[Claimed], now: float) -> list[Composer]:
        """Gives what makes each row's message."""
        ...
