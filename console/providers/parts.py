"""The parts of a message as HTTP APIs want them, read from its bytes: the one source of what is sent. Pure."""

import email
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr

from console.providers.base import Message

# What an API has fields of its own for, or makes itself.
_OWN_FIELDS = frozenset({"from", "to", "subject", "date", "mime-version"})


@dataclass(frozen=True, slots=True)
class Mailbox:
    """An address with the name before it, empty when there is none."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Parts:
    """`headers`: all fields but From, To, Subject, Date and those of MIME, decoded and unfolded."""

    sender: Mailbox
    recipient: Mailbox
    subject: str
    html: str | None
    text: str | None
    headers: tuple[tuple[str, str], ...]

    @property
    def sender_line(self) -> str:
        """The sender as one text, NAME <ADDRESS>, the name quoted where it must be (RFC 5322, 3.2.3)."""
        return _line(self.sender)

    def headers_without(self, *names: str) -> tuple[tuple[str, str], ...]:
        """Gives the headers but those named (in lower case)."""
        return tuple((name, value) for name, value in self.headers if name.lower() not in names)


def parts_of(message: Message) -> Parts:
    """Reads the parts of a message; the recipient is the one that it goes to.

    Raises: ValueError when it has no sender or no body.
    """
    parsed = email.message_from_bytes(message.wire, _class=EmailMessage, policy=SMTP)
    sender = Mailbox(*parseaddr(str(parsed["From"] or "")))
    html, text = _body(parsed, "html"), _body(parsed, "plain")
    if not sender.address or (html is None and text is None):
        raise ValueError("it has no sender or no body")
    headers = tuple(
        (name, str(value))
        for name, value in parsed.items()
        if name.lower() not in _OWN_FIELDS and not name.lower().startswith("content-")
    )
    subject = str(parsed["Subject"] or "")
    return Parts(sender, Mailbox("", message.rcpt_to), subject, html, text, headers)


def _body(parsed: EmailMessage, kind: str) -> str | None:
    part = parsed.get_body(preferencelist=(kind,))
    return None if part is None else part.get_content().replace("\r\n", "\n")


def _line(mailbox: Mailbox) -> str:
    if not mailbox.name:
        return mailbox.address
    name = mailbox.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{name}" <{mailbox.address}>'
