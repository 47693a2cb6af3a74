"""Copies side by side: the same fields of each, and which of them differ. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.incidents import words
from console.incidents.evidence import Enqueued

MOST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One message as it is compared side by side with others."""

    send: Enqueued
    enqueued_at: datetime
    accepted_at: list[datetime]
    doubt_count: int
    entities: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One field of all copies. Times and ids of their own always differ, and say nothing by it."""

    name: str
    values: tuple[str, ...]
    is_telling: bool

    @property
    def differs(self) -> bool:
        return self.is_telling and len(set(self.values)) > 1


@dataclass(frozen=True, slots=True)
class Compared:
    """Copies in columns, of which `left_off` more are not shown."""

    copies: Sequence[Copy]
    rows: Sequence[Row]
    left_off: int


def columns(copies: Sequence[Copy]) -> Compared | None:
    """Gives the copies that reached a provider, or may have, beside each other; of none, all messages; None: no two."""
    arrived = [each for each in copies if each.accepted_at or each.doubt_count] or list(copies)
    if len(arrived) < 2:
        return None
    shown = arrived[:MOST]

    def row(name: str, *values: str, is_telling: bool = True) -> Row:
        return Row(name, tuple(each or "–" for each in values), is_telling)

    rows = [
        row("Subject", *(each.send.subject for each in shown)),
        row("Enqueued", *(words.clock(each.enqueued_at) for each in shown), is_telling=False),
        row("Accepted", *(", ".join(map(words.clock, each.accepted_at)) for each in shown), is_telling=False),
        row("About", *(words.named(each.entities) for each in shown)),
        row("Dedupe key", *(each.send.dedupe_key for each in shown)),
        row("Correlation id", *(each.send.correlation_id for each in shown)),
        row("Message-ID", *(each.send.message_id for each in shown), is_telling=False),
        row("Provider's id", *(each.send.provider_id for each in shown), is_telling=False),
    ]
    return Compared(shown, rows, len(arrived) - len(shown))
