"""SMTP replies: parsing, and what each means at each point of the dialogue. Pure.

Source: RFC 5321, 4.2 (the first digit decides), 4.2.5 (after the dot), 3.8 (421 ends the session); RFC 3463 for
enhanced codes.
"""

import re
from typing import NamedTuple

from console.providers.base import Accepted, Deferred, NoAnswer, Refused, Reply, Trouble, Untouched

TEXT_LIMIT = 2_000
_SIGN_IN = (530, 534, 535, 538)
# Lines that say that another follows, and the last one; and as much of that as may have come so far.
_COMPLETE = re.compile(rb"(?:[1-5]\d\d-[^\n]*\n)*([1-5]\d\d)(?:[ \r][^\n]*)?\n")
_INCOMPLETE = re.compile(rb"(?:[1-5]\d\d-[^\n]*\n)*[^\n]*")
_ENHANCED = re.compile(r"[245]\.\d{1,3}\.\d{1,3}(?=\s|$)")


class Said(NamedTuple):
    """One complete reply: its code, 0 when it can't be read, and its lines with the codes."""

    code: int
    raw: bytes

    @property
    def text(self) -> str:
        """The lines as text that PostgreSQL can hold, whatever bytes the server sent."""
        text = self.raw[: 4 * TEXT_LIMIT].decode("utf-8", "replace").replace("\x00", "\ufffd")
        return text.replace("\r\n", "\n").strip("\r\n")[:TEXT_LIMIT]


def take_reply(buffer: bytearray) -> Said | None:
    """Takes the first complete reply off the buffer; None while it is not complete.

    Gives: code 0 for a line that is no reply, whatever follows it.
    """
    found = _COMPLETE.match(buffer)
    if found is not None:
        said = Said(int(found[1]), bytes(found[0]))
        del buffer[: found.end()]
        return said
    if _INCOMPLETE.fullmatch(buffer):
        return None
    said = Said(0, bytes(buffer))
    buffer.clear()
    return said


def reply(phase: str, said: Said) -> Reply:
    """Gives the reply as it is kept on record."""
    found = _ENHANCED.search(said.text, 4, 24)
    return Reply(phase=phase, code=said.code or None, enhanced=found.group() if found else None, text=said.text)


def before_dot(phase: str, said: Said) -> Deferred | Refused | Untouched:
    """Judges a negative reply to MAIL, RCPT or DATA: the first digit of the basic code decides.

    Only the codes about signing in say nothing of the message (RFC 4954, 6): then the provider has to wait, not it.
    """
    if said.code in _SIGN_IN:
        return Untouched(said.text, Trouble(f"authentication: {said.text}", is_lasting=True))
    if said.code // 100 == 5:
        return Refused(reply(phase, said))
    return Deferred(reply(phase, said))


def after_dot(said: Said) -> Accepted | Deferred | Refused | NoAnswer:
    """Judges the reply to the final dot; anything but a 2yz, 4yz or 5yz leaves the message in doubt."""
    words = reply("end", said)
    match said.code // 100:
        case 2:
            return Accepted(words, provider_id=_queue_id(said.text))
        case 4:
            return Deferred(words)
        case 5:
            return Refused(words)
        case _:
            return NoAnswer(words)


def _queue_id(text: str) -> str | None:
    """Gives what follows "queued as", the id that Postfix and its kin put there."""
    _, found, rest = text.partition("queued as ")
    return rest.split()[0].rstrip(".") if found and rest.split() else None
