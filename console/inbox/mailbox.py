"""A mailbox by IMAP: its new mails one by one, each cut at a limit, and marking them as seen. Knows no database.

URL: imaps://USER@HOST[:PORT]/FOLDER?verify=yes|no, or imap://…?tls=require|off for STARTTLS or none. The password comes
apart from it and stands in no text that leaves this module.
Source: RFC 9051, 2.3.1.1 (UIDs and UIDVALIDITY), 6.4.5 (partial FETCH).
"""

import contextlib
import imaplib
import re
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote, urlsplit

from console.errors import InvalidInput

TIMEOUT_S = 20.0
# A report's own parts come first; what a server returns of the message behind them may be of any size.
LARGEST_BYTES = 256 * 1024
_WINDOW = 10_000
_PORTS = {"imaps": 993, "imap": 143}
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")
_REASON_LIMIT = 300


class MailboxTrouble(Exception):
    """The mailbox can't be read now; the words say why, without the password."""


@dataclass(frozen=True)
class Place:
    """Where a mailbox is, and who reads it."""

    host: str
    port: int
    user: str
    folder: str
    tls: str  # implicit, require (STARTTLS), off
    is_verified: bool
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """The URL as it is kept and shown."""
        scheme = "imaps" if self.tls == "implicit" else "imap"
        query = "&".join([*(["tls=off"] if self.tls == "off" else []), *([] if self.is_verified else ["verify=no"])])
        where = f"{quote(self.user)}@{self.host}:{self.port}/{quote(self.folder)}"
        return f"{scheme}://{where}{'?' + query if query else ''}"


@dataclass(frozen=True)
class Mail:
    """One mail; `raw` is cut at LARGEST_BYTES, `size` is its whole length."""

    uid: int
    size: int
    raw: bytes


def parse_url(url: str, *, password: str = "") -> Place:
    """Reads a mailbox's URL.

    Raises: InvalidInput naming url and the part that is wrong.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise _wrong("it is no URL") from None
    if parts.password is not None:
        raise _wrong("leave the password out of it; it is read from standard input")
    user, folder = unquote(parts.username or ""), unquote(parts.path.strip("/")) or "INBOX"
    if parts.scheme not in _PORTS or not parts.hostname:
        raise _wrong("it takes imaps://USER@HOST/FOLDER")
    if not user or not user.isprintable():
        raise _wrong("it has no user; imaps://USER@HOST/FOLDER is meant")
    if not folder.isascii() or not folder.isprintable():
        raise _wrong("the folder's name takes ASCII characters only")
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    tls, verify = options.pop("tls", "require"), options.pop("verify", "yes")
    if options or tls not in ("require", "off") or verify not in ("yes", "no"):
        raise _wrong("its options are tls=require or off, and verify=yes or no")
    return Place(
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        user=user,
        folder=folder,
        tls="implicit" if parts.scheme == "imaps" else tls,
        is_verified=verify == "yes",
        password=password,
    )


class OpenMailbox:
    """A signed-in line with the folder open."""

    def __init__(self, client: imaplib.IMAP4, folder: str):
        self._client = client
        self._ask("SELECT", lambda: client.select(_quoted(folder)))
        self.uid_validity = self._number("UIDVALIDITY")
        self._uid_next = self._number("UIDNEXT")

    def new_mails(self, *, after_uid: int) -> Iterator[Mail]:
        """Gives the mails behind a UID in their order. One that the server does not give out is passed over."""
        for uid in self._uids(after_uid):
            kind, parts = self._client.uid("FETCH", str(uid), f"(RFC822.SIZE BODY.PEEK[]<0.{LARGEST_BYTES}>)")
            found = next((each for each in parts or () if isinstance(each, tuple)), None)
            if kind == "OK" and found is not None:
                size = _SIZE.search(found[0])
                yield Mail(uid, int(size[1]) if size else len(found[1]), found[1][:LARGEST_BYTES])

    def mark_seen(self, uids: Iterable[int]) -> None:
        """Marks mails as seen: a courtesy to people who look into the mailbox, nothing hangs on it."""
        if chosen := ",".join(map(str, uids)):
            self._client.uid("STORE", chosen, "+FLAGS.SILENT", r"(\Seen)")

    def _uids(self, after_uid: int) -> Iterator[int]:
        low = after_uid + 1
        while True:
            # Window by window: an answer of a million numbers would be a line that is too long.
            high = "*" if self._uid_next == 0 else str(low + _WINDOW - 1)
            lines = self._ask("SEARCH", lambda span=f"{low}:{high}": self._client.uid("SEARCH", "UID", span))
            found = sorted(int(each) for line in lines if line for each in line.split() if each.isdigit())
            # "n:*" gives the last mail even when its number is below n.
            yield from (uid for uid in found if uid >= low)
            low += _WINDOW
            if low >= self._uid_next:
                return

    def _number(self, name: str) -> int:
        _, values = self._client.response(name)
        last = values[-1] if values else None
        return int(last) if isinstance(last, bytes) and last.isdigit() else 0

    @staticmethod
    def _ask(name: str, call) -> list:
        kind, parts = call()
        if kind != "OK":
            raise MailboxTrouble(f"{name}: {_text(parts)}")
        return parts


@contextlib.contextmanager
def visit(place: Place) -> Iterator[OpenMailbox]:
    """Signs in and opens the folder; signs out at the end.

    Raises: MailboxTrouble, also for what goes wrong with the line while it is open.
    """
    client: imaplib.IMAP4 | None = None
    try:
        client = _connect(place)
        _sign_in(client, place)
        yield OpenMailbox(client, place.folder)
    except (imaplib.IMAP4.error, OSError, MailboxTrouble) as error:
        reason = _words(error)
        if place.password:
            reason = reason.replace(place.password, "***")
        raise MailboxTrouble(reason[:_REASON_LIMIT]) from None
    finally:
        if client is not None:
            with contextlib.suppress(imaplib.IMAP4.error, OSError):
                client.logout()


def _connect(place: Place) -> imaplib.IMAP4:
    context = ssl.create_default_context()
    if not place.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if place.tls == "implicit":
        return imaplib.IMAP4_SSL(place.host, place.port, ssl_context=context, timeout=TIMEOUT_S)
    client = imaplib.IMAP4(place.host, place.port, timeout=TIMEOUT_S)
    if place.tls == "require":
        try:
            client.starttls(context)
        except BaseException:
            client.shutdown()
            raise
    return client


def _sign_in(client: imaplib.IMAP4, place: Place) -> None:
    if "AUTH=PLAIN" in client.capabilities:
        client.authenticate("PLAIN", lambda _: f"\0{place.user}\0{place.password}".encode())
        return
    if not (place.user + place.password).isascii():
        raise MailboxTrouble("the server takes ASCII only in user names and passwords")
    # The library quotes the password itself, and the name not.
    client.login(_quoted(place.user), place.password)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    if isinstance(error, imaplib.IMAP4.error) and error.args and isinstance(error.args[0], bytes):
        return _text([error.args[0]])
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())


def _text(parts: list) -> str:
    said = b" ".join(each for each in parts if isinstance(each, bytes)).decode("utf-8", "replace")
    return " ".join(said.replace("\x00", "\ufffd").split()) or "refused"


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(f"The mailbox's URL can't be used: {what}.", field="url")
