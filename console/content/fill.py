"""One recipient's message from compiled content. The hot path: no message objects, no parsing, bytes joined once."""

import re
from datetime import datetime
from email.utils import format_datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import idna
from jinja2.exceptions import TemplateError
from jinja2.runtime import Context

from console.content.body import quoted_printable
from console.content.compile import HTML, PLAIN, Compiled, Part
from console.content.header import Headers, mailbox, trouble_in, unstructured
from console.content.source import Filled, Recipient, Unfillable
from console.content.values import RUN_KEY, Run, known

PART_CHARS_LIMIT = 1_000_000

_ADDRESS = re.compile(r'([^\s<>()\[\]\\,;:"@\x00-\x20\x7f-\xa0]{1,64})@([^\s<>()\[\]\\,;:"@\x00-\x20\x7f-\xa0]{1,253})')
_MESSAGE_ID = re.compile(r"<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9.\[\]:-]+>")
_URL = re.compile(r"https?://[\x21-\x3b\x3d\x3f-\x7e]{1,900}")

_BODY_HEADER = b'MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="%b"\r\n\r\n'
_PART_HEADER = b'--%b\r\nContent-Type: text/%b; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'


def fill(compiled: Compiled, recipient: Recipient, headers: Headers) -> Filled:
    """Gives the message for one recipient; equal arguments give equal bytes, so a retry repeats the message.

    Raises: Unfillable when the values make no message: merge fields without value or fallback (all of them are
            named), a line break in a header, an address that SMTP can't carry, a loop or part out of bounds.
    Source: RFC 5322, 3.6 (fields); RFC 2046, 5.1.4 (alternative); RFC 2369 and RFC 8058 (unsubscribing).
    """
    run = Run()
    try:
        plain, html = _contexts(compiled, recipient, run)
        subject = _text(compiled.subject, plain)
        sender_name = _text(compiled.sender_name, plain)
        text_part = _text(compiled.text, plain)
        html_part = _text(compiled.html, html)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise Unfillable(_missing(run) or f"its values don't fit the template: {error}") from None
    if run.missing:
        raise Unfillable(_missing(run))
    rcpt_to, is_ascii = _envelope_address(recipient.email)
    boundary = _boundary(recipient.message_id)
    try:
        wire = b"".join(
            (
                compiled.from_line
                or mailbox("From", _fit(sender_name, compiled.sender_name, recipient), compiled.sender.address),
                b"To: %b\r\n" % rcpt_to.encode(),
                compiled.subject_line or unstructured("Subject", _fit(subject, compiled.subject, recipient)),
                _date_line(recipient.dated_at),
                b"Message-ID: %b\r\n" % recipient.message_id.encode("ascii"),
                _unsubscribe_lines(recipient.unsubscribe_url),
                headers.lines,
                _BODY_HEADER % boundary,
                _PART_HEADER % (boundary, b"plain"),
                quoted_printable(text_part),
                _PART_HEADER % (boundary, b"html"),
                quoted_printable(html_part),
                b"--%b--\r\n" % boundary,
            )
        )
    except UnicodeEncodeError:
        raise Unfillable("a value holds half a character (a lone surrogate)") from None
    return Filled(compiled.sender.mail_from, rcpt_to, wire, compiled.sender.needs_smtputf8 or not is_ascii)


def _missing(run: Run) -> str:
    """Gives the reason that names every missing field, empty when none is."""
    return "missing " + ", ".join(run.missing) if run.missing else ""


def _contexts(compiled: Compiled, recipient: Recipient, run: Run) -> tuple[Context, Context]:
    """Gives the contexts of the plain and the HTML templates, over the same values."""
    values = recipient.values
    names: dict[str, Any] = {field: known(values.get(field), field, run) for field in compiled.fields}
    names["email"] = recipient.email
    names["unsubscribe_url"] = known(recipient.unsubscribe_url, "unsubscribe_url", run)
    names[RUN_KEY] = run
    return Context(PLAIN, names, None, {}), Context(HTML, names, None, {})


def _text(part: Part, context: Context) -> str:
    """Gives a part's text; stops as soon as it grows out of bounds."""
    chunks: list[str] = []
    chars = 0
    for chunk in part.chunks(context):
        chunks.append(chunk)
        chars += len(chunk)
        if chars > PART_CHARS_LIMIT:
            raise ValueError(f"a part grows over {PART_CHARS_LIMIT:,} characters")
    return "".join(chunks)


def _fit(value: str, part: Part, recipient: Recipient) -> str:
    """Gives a header value back. Raises: Unfillable naming the field that can't stand in a header."""
    trouble = trouble_in(value)
    if trouble is None:
        return value
    for field in sorted(part.names):
        path = _path_of_trouble(recipient.values.get(field), field)
        if path:
            raise Unfillable(f"bad header value in {path}: {trouble}")
    raise Unfillable(f"bad header value: {trouble}")


def _path_of_trouble(value: Any, path: str) -> str | None:
    if isinstance(value, str):
        return path if trouble_in(value) else None
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, each in pairs if (found := _path_of_trouble(each, f"{path}.{key}"))), None)


def _envelope_address(email: str) -> tuple[str, bool]:
    """Gives the forward path with an A-label domain, and whether its local part is ASCII."""
    match = _ADDRESS.fullmatch(email)
    if match is None:
        raise Unfillable("its address can't be written in a message")
    local_part, domain = match.groups()
    if email.isascii():
        return email, True
    try:
        domain = idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError as error:
        raise Unfillable(f"its address has no valid domain: {error}") from None
    return f"{local_part}@{domain}", local_part.isascii()


def _boundary(message_id: str) -> bytes:
    """Gives the boundary. No part can hold it: `=_` does not occur in quoted-printable (RFC 2045, 6.7)."""
    if not _MESSAGE_ID.fullmatch(message_id):
        raise ValueError(f"not a Message-ID: {message_id!r}")
    return b"=_" + blake2b(message_id.encode("ascii"), digest_size=12).hexdigest().encode("ascii")


@lru_cache(maxsize=256)
def _date_line(dated_at: datetime) -> bytes:
    if dated_at.tzinfo is None:
        raise ValueError("dated_at has no time zone")
    return b"Date: %b\r\n" % format_datetime(dated_at).encode("ascii")


def _unsubscribe_lines(url: str | None) -> bytes:
    """Gives both fields of one-click unsubscribing, unfolded and unencoded as RFC 8058, 3.1 and 4 want them."""
    if url is None:
        return b""
    if not _URL.fullmatch(url):
        raise ValueError(f"not an address for List-Unsubscribe: {url!r}")
    return b"List-Unsubscribe: <%b>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" % url.encode("ascii")
