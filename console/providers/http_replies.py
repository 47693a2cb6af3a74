"""What an HTTP answer to a hand-over means, as far as all vendors agree. Pure.

Source: the table in the design's providers.md, 3.2; RFC 9110, 10.2.3 (Retry-After) and 15 (status codes).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

from console.providers.base import Accepted, Answer, Deferred, NoAnswer, Refused, Reply, Trouble, Untouched

TEXT_LIMIT = 2_000
# A wait that a provider asks for is believed up to this: a wrong date in a header must not bury a message.
WAIT_CAP_S = 3_600.0
_THROTTLED = (420, 421, 425, 429)
# The key is wrong, the account may not send, or the address that we call is no API: true of every message.
_OURS = (401, 402, 403, 404, 405)


@dataclass(frozen=True)
class Response:
    """An answer whose status came; its body may be cut. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_complete: bool = True

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The body as a JSON object; empty when it is none, or cut."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def is_empty_object(self) -> bool:
        """Whether the body says {}, as some do for an empty list."""
        return self.body.strip() == b"{}"

    @property
    def text(self) -> str:
        """The body as text that PostgreSQL can hold."""
        return self.body[: 4 * TEXT_LIMIT].decode("utf-8", "replace").replace("\x00", "�").strip()[:TEXT_LIMIT]


def reply(response: Response, text: object = None) -> Reply:
    """Gives the answer as it is kept on record; `text`, the vendor's sentence, instead of the whole body."""
    words = text.replace("\x00", "�")[:TEXT_LIMIT] if isinstance(text, str) and text else response.text
    return Reply("response", code=response.status, text=words or f"HTTP {response.status}")


def judge(
    response: Response, *, text: object = None, provider_id: object = None, now: datetime | None = None
) -> Answer:
    """Judges an answer by its status alone.

    Takes:  text, the vendor's sentence; provider_id, the id from the body (not a text or number: none); now, for a
            Retry-After that is a date.
    """
    words, status = reply(response, text), response.status
    if 200 <= status <= 299:
        # Also when the body is cut: the status says that it was taken, only the id is missing.
        return Accepted(words, provider_id=identifier(provider_id))
    if status in _OURS or 300 <= status <= 399:
        return Untouched(words.text, trouble(response, text))
    if status in _THROTTLED:
        return Deferred(words, wait_s=asked_wait_s(response, now=now))
    if status == 503 and (wait_s := asked_wait_s(response, now=now)) is not None:
        return Deferred(words, wait_s=wait_s)
    # 408: the server has given up reading or waiting, and who knows which.
    if status == 408 or status >= 500 or status < 200:
        return NoAnswer(words)
    return Refused(words)


def trouble(response: Response, text: object = None) -> Trouble:
    """Gives the answer as trouble with our account or address, which no other message will fare better with."""
    return Trouble(f"HTTP {response.status}: {reply(response, text).text}", is_lasting=True)


def checked(response: Response, *, text: object = None) -> Trouble | None:
    """Judges the answer to a question that was only asked to see whether the provider works and knows us."""
    status = response.status
    if status >= 500:
        return Trouble(f"HTTP {status}: {reply(response, text).text}")
    # 403: a key that may send but not read; 429: it works, and has enough to do.
    if 200 <= status <= 299 or status in (403, 429):
        return None
    return trouble(response, text)


def asked_wait_s(response: Response, *, now: datetime | None = None) -> float | None:
    """Gives the seconds that Retry-After (a number or a date) asks for, None when it does not."""
    asked = response.headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return min(float(asked[:9]), WAIT_CAP_S)
    try:
        until = parsedate_to_datetime(asked)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    start = now or _server_time(response)
    return None if start is None else min(max((until - start).total_seconds(), 0.0), WAIT_CAP_S)


def identifier(value: object) -> str | None:
    """Gives a vendor's id as text; None when it is neither text nor number."""
    if isinstance(value, str) and value:
        return value.replace("\x00", "�")[:500]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _server_time(response: Response) -> datetime | None:
    """Gives the answer's own Date: the difference of the two needs no clock of ours."""
    try:
        found = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
