"""One recipient's message from compiled content. The hot path: no message objects, no parsing, bytes joined once."""

import re
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import idna
from jinja2.runtime import Context

from console.content.body import quoted_printable
from console.content.compile import PLAIN, Compiled, Part
from console.content.header import Headers, mailbox, trouble_in, unstructured
from console.content.source import Filled, Recipient, Unfillable
from console.content.values import RUN_KEY, Run, known

# Far more than any mail program shows; folding takes care of the lines.
HEADER_CHARS_LIMIT = 2_000

# No blanks, controls, surrogates or anything that has a meaning of its own in a path or a header.
_APART = r"[^\s<>()\[\]\\,;:\"@\x00-\x20\x7f-\xa0\ud800-\udfff]"
_ADDRESS = re.compile(f"({_APART}{{1,64}})@({_APART}{{1,253}})")
_MESSAGE_ID = re.compile(r"<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9.\[\]:-]+>")
_CORRELATION_ID = re.compile(r"[A-Za-z0-9._:/+=~-]{1,128}")
_URL = re.compile(r"https?://[\x21-\x3b\x3d\x3f-\x7e]{1,900}")

# Everything after the message's own fields; the line's end before a boundary belongs to the boundary (RFC 2046, 5.1.1).
_BODY = (
    b'MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="%b"\r\n\r\n'
    b'--%b\r\nContent-Type: text/plain; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'
    b"%b\r\n"
    b'--%b\r\nContent-Type: text/html; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'
    b"%b\r\n"
    b"--%b--\r\n"
)


def fill(compiled: Compiled, recipient: Recipient, headers: Headers) -> Filled:
    """Gives the message for one recipient; equal arguments give equal bytes, so a retry repeats the message.

    Raises: Unfillable when the values make no message: merge fields without value or fallback (all of them are
            named), a line break in a header, an address that SMTP can't carry, a loop or part out of bounds.
            ValueError for a Message-ID, date or unsubscribe address that this program itself got wrong.
    Source: RFC 5322, 3.6 (fields); RFC 2046, 5.1.4 (alternative); RFC 2369 and RFC 8058 (unsubscribing).
    """
    rcpt_to, has_ascii_local_part = _envelope_address(recipient.email)
    name, subject, text, html = _texts(compiled, recipient)
    boundary = _boundary(recipient.message_id)
    wire = b"".join(
        (
            compiled.from_line or _from_line(compiled, name, recipient),
            f"To: {rcpt_to}\r\n".encode(),
            compiled.subject_line or _subject_line(compiled, subject, recipient),
            _date_line(recipient.dated_at),
            f"Message-ID: {recipient.message_id}\r\n".encode("ascii"),
            _correlation_line(recipient.correlation_id),
            _unsubscribe_lines(recipient.unsubscribe_url),
            headers.lines,
            _BODY % (boundary, boundary, text, boundary, html, boundary),
        )
    )
    needs_smtputf8 = compiled.sender.needs_smtputf8 or not has_ascii_local_part
    return Filled(compiled.sender.mail_from, rcpt_to, wire, needs_smtputf8)


def _texts(compiled: Compiled, recipient: Recipient) -> tuple[str, str, bytes, bytes]:
    """Gives the sender's name and the subject, empty where they are the same for everybody, and both body parts.

    All four are filled before anything is refused, so that the reason names the gaps of all of them.
    """
    run = Run()
    context = _context(compiled, recipient, run)
    try:
        name = "" if compiled.from_line else "".join(compiled.sender_name.chunks(context)).strip()
        subject = "" if compiled.subject_line else "".join(compiled.subject.chunks(context))
        text = quoted_printable(compiled.text.chunks(context), compiled.text.pieces)
        html = quoted_printable(compiled.html.chunks(context), compiled.html.pieces)
    except UnicodeEncodeError:
        raise Unfillable("a value holds half a character (a lone surrogate)") from None
    except Exception as error:  # noqa: BLE001  # a template is foreign code: whatever it raises is this recipient's
        trouble = str(error) or type(error).__name__
        raise Unfillable(_missing(run) or f"its values don't fit the template: {trouble}") from None
    if run.missing:
        raise Unfillable(_missing(run))
    return name, subject, text, html


def _missing(run: Run) -> str:
    """Gives the reason that names every missing field, empty when none is."""
    return "missing " + ", ".join(run.missing) if run.missing else ""


def _context(compiled: Compiled, recipient: Recipient, run: Run) -> Context:
    """Gives what all templates of the message read from."""
    values = recipient.values
    names: dict[str, Any] = {field: known(values.get(field), field, run) for field in compiled.fields}
    names["email"] = recipient.email
    names["unsubscribe_url"] = known(recipient.unsubscribe_url, "unsubscribe_url", run)
    names[RUN_KEY] = run
    return Context(PLAIN, names, None, {})


def _from_line(compiled: Compiled, name: str, recipient: Recipient) -> bytes:
    _refuse_trouble(name, compiled.sender_name, recipient)
    return mailbox("From", name, compiled.sender.address)


def _subject_line(compiled: Compiled, subject: str, recipient: Recipient) -> bytes:
    _refuse_trouble(subject, compiled.subject, recipient)
    if not subject.strip():
        raise Unfillable("its subject is empty")
    return unstructured("Subject", subject)


def _refuse_trouble(value: str, part: Part, recipient: Recipient) -> None:
    """Raises: Unfillable naming the field whose value can't stand in a header (RFC 5322, 2.2)."""
    trouble = trouble_in(value)
    if trouble is None:
        if len(value) > HEADER_CHARS_LIMIT:
            raise Unfillable(f"a header value is longer than {HEADER_CHARS_LIMIT:,} characters")
        return
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
    """Gives the Date field in UTC: a retry may read the same moment in another zone, and must give the same bytes."""
    if dated_at.tzinfo is None:
        raise ValueError("dated_at has no time zone")
    return f"Date: {format_datetime(dated_at.astimezone(UTC))}\r\n".encode("ascii")


@lru_cache(maxsize=256)
def _correlation_line(correlation_id: str) -> bytes:
    """Gives the field that leads back to what asked for the message; none for an id that no header should carry."""
    if not _CORRELATION_ID.fullmatch(correlation_id):
        return b""
    return f"X-Correlation-ID: {correlation_id}\r\n".encode("ascii")


def _unsubscribe_lines(url: str | None) -> bytes:
    """Gives both fields of one-click unsubscribing, unfolded and unencoded as RFC 8058, 3.1 and 4 want them."""
    if url is None:
        return b""
    if not _URL.fullmatch(url):
        raise ValueError(f"not an address for List-Unsubscribe: {url!r}")
    return b"List-Unsubscribe: <%b>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" % url.encode("ascii")
