"""What goes into content and what comes out of it, as plain values. No rules live here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.errors import SendonceError


@dataclass(frozen=True)
class Source:
    """Content as its author wrote it, with merge fields. An empty text part is made from the HTML part."""

    subject: str
    sender: str
    html: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Everything that makes one recipient's message; a retry with equal values gives equal bytes.

    `values` holds JSON values by merge field. `message_id` carries its brackets. `dated_at` is aware. Without an
    `unsubscribe_url` (mail that nobody can leave) the list's unsubscribe headers are left out. `correlation_id` leads
    from the message back to what asked for it.
    """

    email: str
    values: Mapping[str, Any]
    message_id: str
    dated_at: datetime
    unsubscribe_url: str | None = None
    correlation_id: str = ""


@dataclass(frozen=True, slots=True)
class Filled:
    """One message, ready for SMTP: the envelope with A-label domains, and the bytes, CRLF only, not dot-stuffed."""

    mail_from: str
    rcpt_to: str
    wire: bytes
    needs_smtputf8: bool


class Unfillable(SendonceError):
    """This recipient's values make no message; `reason` says why. The other recipients are not concerned."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason
