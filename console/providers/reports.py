"""What providers report later about a message: the shape that all vendors' reports are brought to. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

# Mailbox, system or address that there is not, or not any more (RFC 3463, 3.2; RFC 7505 for 1.10).
_NO_SUCH_ADDRESS = frozenset({"1.1", "1.2", "1.6", "1.10"})
_ENHANCED = re.compile(r"(?<![\d.])([245])\.(\d{1,3}\.\d{1,3})(?!\d|\.\d)")
TEXT_LIMIT = 1_000


class Fact(StrEnum):
    """What happened to a message. Each of them proves that the provider had accepted it."""

    ACCEPTED = "accepted"
    DEFERRED = "deferred"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    COMPLAINED = "complained"
    OPENED = "opened"
    DROPPED = "dropped"  # accepted, and then not sent on: blocked, a virus, an address on the provider's own list


class Bounce(StrEnum):
    """Why it bounced, as far as it matters for the next message to that address."""

    HARD = "hard"  # there is no such address: no more mail to it
    SOFT = "soft"  # full, busy, for now
    POLICY = "policy"  # about us, or about this message; the address is fine
    OTHER = "other"  # for good, but not because there is no such address


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One fact about one message."""

    fact: Fact
    tag: str  # ours, empty when the report has none
    provider_id: str = ""
    email: str = ""
    happened_at: datetime | None = None  # by the provider's clock
    bounce: Bounce | None = None  # with BOUNCED
    text: str = ""


Reader = Callable[[Any], list[Report]]


def bounce_class(text: str, *, otherwise: Bounce) -> Bounce:
    """Gives the class of a bounce from the enhanced code in the remote server's words.

    Takes:  otherwise, what the vendor's own word for it means, for words without a code.
    Source: RFC 3463, 3; which codes stop mail to an address is said in the design's providers.md, 3.1 and 3.3.
    """
    found = _ENHANCED.search(text)
    if found is None:
        return otherwise
    digit, detail = found.groups()
    if detail.startswith(("7.", "6.")):
        return Bounce.POLICY
    if digit == "4" or detail in ("2.2", "3.1") or detail.startswith("4."):
        return Bounce.SOFT
    if detail in _NO_SUCH_ADDRESS:
        return Bounce.HARD
    return Bounce.OTHER


def epoch(value: object) -> datetime | None:
    """Gives the moment of a number of seconds (or milliseconds) since 1970; None when it is none that can be."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e14:
        return None
    return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)


def iso(value: object) -> datetime | None:
    """Gives the moment of an ISO 8601 text, taken as UTC when it names no zone; None when it is none.

    Postmark writes seven decimals, which Python's own reader takes from 3.11 on.
    """
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def words(*values: object) -> str:
    """Gives the texts among the values as one line that the database can keep."""
    told = "; ".join(" ".join(value.split()) for value in values if isinstance(value, str) and value.strip())
    return told.replace("\x00", "�")[:TEXT_LIMIT]


def text_of(value: object) -> str:
    """Gives a text or whole number as text, anything else as nothing."""
    if isinstance(value, str):
        return value.replace("\x00", "�")[:500]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def fields_of(value: object) -> dict[str, Any]:
    """Gives an object's fields; none for anything else."""
    return value if isinstance(value, dict) else {}
