"""Builders: plain functions with full defaults that put rows into a test's database."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from console.content.compile import Compiled, compile_content
from console.content.header import Headers
from console.content.source import Recipient, Source


def content(
    *,
    subject: str = "News for {{ first_name }}",
    sender: str = "Ann Lee <news@example.com>",
    html: str = "<p>Hello {{ first_name }}</p>",
    text: str = "Hello {{ first_name }}\n",
) -> Compiled:
    """Compiled content with one merge field."""
    return compile_content(Source(subject=subject, sender=sender, html=html, text=text))


def recipient(
    values: Mapping[str, Any] | None = None,
    *,
    email: str = "rita@example.com",
    message_id: str = "<0123456789abcdef@mail.example.com>",
    dated_at: datetime = datetime(2027, 3, 4, 5, 6, 7, tzinfo=UTC),
    unsubscribe_url: str | None = "https://console.example.com/audience/unsubscribe/abc",
) -> Recipient:
    """A recipient with a first name."""
    return Recipient(
        email=email,
        values={"first_name": "Rita"} if values is None else values,
        message_id=message_id,
        dated_at=dated_at,
        unsubscribe_url=unsubscribe_url,
    )


def list_headers(*, list_id: str = "l1.t1.example.com", feedback_id: str = "7:t1:campaign:sendonce") -> Headers:
    """The header fields that are equal in a whole campaign."""
    return Headers(list_id=list_id, feedback_id=feedback_id)
