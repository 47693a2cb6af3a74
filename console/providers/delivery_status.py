"""Mail servers' reports by mail: which facts a delivery status notification tells, about which message. Pure.

Only the parts of the report itself are read: a report that somebody forwards inside another mail tells nothing.
Source: RFC 3464, 2.1-2.3; RFC 6522, 3 (its parts); RFC 6533 (the same beyond ASCII).
"""

import email
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from console.providers.reports import Bounce, Fact, Report, bounce_class, text_of, words

_ACTIONS = {
    "failed": Fact.BOUNCED,
    "delayed": Fact.DEFERRED,
    "delivered": Fact.DELIVERED,
    "relayed": Fact.ACCEPTED,
    "expanded": Fact.ACCEPTED,
}
_STATUS_TYPES = ("message/delivery-status", "message/global-delivery-status")
_RETURNED_TYPES = ("message/rfc822", "message/global")
_HEADER_TYPES = ("text/rfc822-headers", "message/global-headers")
_VAGUE = re.compile(r"[245]\.0\.0")
# One message has one recipient; a report about very many is somebody's joke.
_MOST_RECIPIENTS = 20


@dataclass(frozen=True, slots=True)
class Told:
    """One fact, and what leads to its message when the report does not carry our tag.

    `addresses`: whom the report says that the message was for, in lower case: as it came in, as it went on, and the To
    field of what is returned.
    """

    report: Report
    message_id: str
    addresses: frozenset[str]


def read(raw: bytes) -> list[Told] | None:
    """Gives the facts that a mail tells; None when it is no report of a delivery.

    The mail may be cut or malformed; what can be read of it counts.
    """
    mail = email.message_from_bytes(raw)
    if mail.get_content_type() != "multipart/report" or not mail.is_multipart():
        return None
    parts = [each for each in mail.get_payload() if isinstance(each, Message)]
    status = next((each for each in parts if each.get_content_type() in _STATUS_TYPES), None)
    if status is None:
        return None
    blocks = list(_blocks(status))
    returned = _returned(parts)
    tag = text_of(_field(blocks[0], "Original-Envelope-Id")) if blocks else ""
    return [
        told
        for block in blocks[1 : 1 + _MOST_RECIPIENTS]
        if (told := _told(block, tag=tag, returned=returned)) is not None
    ]


def _blocks(part: Message) -> Iterator[Message]:
    """Gives the groups of fields: about the message first, then one for each recipient."""
    inner = part.get_payload()
    groups = [each for each in inner if isinstance(each, Message)] if isinstance(inner, list) else []
    for group in groups:
        if group.keys():
            yield group
        # RFC 6533's type is unknown to the library, which takes the groups after the first for a body.
        rest = group.get_payload()
        if isinstance(rest, str):
            for text in re.split(r"\n[ \t\r]*\n", rest):
                if (found := email.message_from_string(text.strip() + "\n")).keys():
                    yield found


def _told(block: Message, *, tag: str, returned: Message) -> Told | None:
    fact = _ACTIONS.get(_field(block, "Action").lower())
    if fact is None:
        return None
    final, original = _address(block, "Final-Recipient"), _address(block, "Original-Recipient")
    status, said = _field(block, "Status"), _field(block, "Diagnostic-Code")
    report = Report(
        fact=fact,
        tag=tag,
        email=text_of(final or original),
        happened_at=_moment(_field(block, "Last-Attempt-Date")),
        bounce=_bounce(status, said) if fact is Fact.BOUNCED else None,
        text=words(status, said),
    )
    to = [address for _, address in getaddresses([_field(returned, "To")])]
    addresses = frozenset(each.lower() for each in (final, original, *to) if "@" in each)
    return Told(report, text_of(_field(returned, "Message-ID")), addresses)


def _bounce(status: str, said: str) -> Bounce:
    """Gives the class by the status; by the remote server's own code where that is missing or says no more than 5."""
    by_words = bounce_class(said, otherwise=Bounce.OTHER)
    if not status or _VAGUE.match(status):
        return by_words
    by_status = bounce_class(status, otherwise=by_words)
    # Some say "no such address" of what they refuse for another reason; an address is not given up on a doubt.
    return Bounce.POLICY if by_status is Bounce.HARD and by_words is Bounce.POLICY else by_status


def _returned(parts: list[Message]) -> Message:
    """Gives the headers of the message that the report is about; empty when it returns none."""
    for part in parts:
        kind, inner = part.get_content_type(), part.get_payload()
        if kind in _RETURNED_TYPES and isinstance(inner, list) and inner and isinstance(inner[0], Message):
            return inner[0]
        if kind in _HEADER_TYPES:
            if isinstance(inner, list) and inner and isinstance(inner[0], Message):
                return inner[0]
            if isinstance(content := part.get_payload(decode=True), bytes):
                return email.message_from_bytes(content.lstrip())
    return Message()


def _field(block: Message, name: str) -> str:
    # With bytes beyond ASCII the library gives an object instead of a text.
    return " ".join(str(block.get(name, "")).split())


def _address(block: Message, name: str) -> str:
    """Gives the address of `rfc822; rita@example.com`."""
    _, _, value = _field(block, name).partition(";")
    return value.strip().strip("<>")


def _moment(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
