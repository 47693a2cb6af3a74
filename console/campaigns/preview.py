"""What a campaign looks like for an example person: the very message that would be sent, taken apart again. Pure."""

import email
import email.policy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any, cast

from console.content.compile import compile_content
from console.content.fill import fill
from console.content.header import Headers
from console.content.source import Recipient, Source, Unfillable
from console.errors import InvalidInput

_HEADERS = Headers(list_id="preview.invalid", feedback_id="preview")
_DATED_AT = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Preview:
    """The parts as the person would read them; with a `problem` they are the author's own, not filled."""

    recipient: str
    subject: str
    html: str
    text: str
    size_bytes: int
    problem: str | None = None


def preview(source: Source, *, recipient: str, values: Mapping[str, Any]) -> Preview:
    """Gives the message for the person with these merge values."""
    try:
        filled = fill(
            compile_content(source),
            Recipient(
                email=recipient,
                values=values,
                message_id="<preview@preview.invalid>",
                dated_at=_DATED_AT,
                unsubscribe_url="https://unsubscribe.invalid/each-person-has-a-link-of-their-own",
            ),
            _HEADERS,
        )
    except (Unfillable, InvalidInput) as error:
        size_bytes = len(source.html.encode()) + len(source.text.encode())
        return Preview(recipient, source.subject, source.html, source.text, size_bytes, problem=str(error))
    message = cast(EmailMessage, email.message_from_bytes(filled.wire, policy=email.policy.default))
    return Preview(
        recipient=recipient,
        subject=str(message["subject"]),
        html=_part(message, "html"),
        text=_part(message, "plain"),
        size_bytes=len(filled.wire),
    )


def _part(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    return part.get_content() if part is not None else ""
