"""Header fields as bytes: encoded words, phrases, folding. Knows values, not messages; bodies are in body.py."""

import re
from base64 import b64encode
from dataclasses import dataclass, field

from console.errors import InvalidInput

LINE_LIMIT = 78
_WORD_LIMIT = 75
_WORD_FRAME = len("=?utf-8?q??=")

# Controls (with CR, LF, NUL, VT, FF, NEL) and the two Unicode separators: whatever some program takes for a line's end.
_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
# Lone surrogates stand with them: they have no encoding.
_BAD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_DOTTED = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.:@-]+")

# RFC 2047, 5 (3): what Q may leave as it is inside a phrase; the same set serves Subject.
_Q_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_Q = [chr(byte) if byte in _Q_PLAIN else "_" if byte == 0x20 else f"={byte:02X}" for byte in range(256)]


def trouble_in(value: str) -> str | None:
    """Gives why a value can't stand in a header ("line break", "control character"), None when it can."""
    if value.isprintable():
        return None
    found = _BAD.search(value)
    if found is None:
        return None
    return "line break" if found.group() in _BREAKS else "control character"


def unstructured(name: str, value: str) -> bytes:
    """Gives a whole field with free text, such as Subject, ending in CRLF.

    Takes:  value, any text without controls and line separators.
    Shape:  no line over 78 octets; decoding by RFC 2047 gives exactly `value` back.
    Source: RFC 5322, 2.1.1 and 2.2.3 (folding); RFC 2047, 2 and 5 (encoded words).
    """
    if value.isascii() and "=?" not in value and value == value.strip() and "  " not in value:
        if len(name) + 2 + len(value) <= LINE_LIMIT:
            return f"{name}: {value}\r\n".encode("ascii")
        folded = _fold(f"{name}: {value}")
        if folded is not None:
            return folded
    return f"{name}: {_encoded_words(value, taken=len(name) + 2)}\r\n".encode("ascii")


def _fold(line: str) -> bytes | None:
    """Gives the line folded at its blanks, None when a word is too long for that or nothing fits beside the name."""
    lines = [""]
    for word in line.split(" "):
        if len(word) + 1 > LINE_LIMIT:
            return None
        if lines[-1] and len(lines[-1]) + 1 + len(word) > LINE_LIMIT:
            lines.append(" " + word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    if lines[0] == line.partition(" ")[0]:
        return None
    return ("\r\n".join(lines) + "\r\n").encode("ascii")


def _encoded_words(value: str, *, taken: int) -> str:
    """Gives the whole value as encoded words, folded; `taken` octets of the first line are in use.

    All of it, blanks too, goes into the words: between two encoded words white space does not count (RFC 2047, 6.2),
    so nothing can be lost or added at their edges. Each word holds whole characters (RFC 2047, 5).
    """
    in_q = [_q(char) for char in value]
    is_q = sum(map(len, in_q)) * 3 <= len(value.encode()) * 4
    # What B takes per character is counted in octets: 3 of them make 4 characters.
    sizes = [len(each) for each in in_q] if is_q else [len(char.encode()) for char in value]
    room = min(_WORD_LIMIT, LINE_LIMIT - taken) - _WORD_FRAME
    words: list[str] = []
    begin = size = 0
    for position, each in enumerate(sizes):
        if size + each > (room if is_q else room // 4 * 3):
            words.append(_word(value[begin:position], is_q=is_q))
            begin, size = position, 0
            room = _WORD_LIMIT - _WORD_FRAME
        size += each
    words.append(_word(value[begin:], is_q=is_q))
    return "\r\n ".join(words)


def _q(text: str) -> str:
    return "".join([_Q[byte] for byte in text.encode()])


def _word(text: str, *, is_q: bool) -> str:
    """Gives one encoded word (RFC 2047, 2; 4.1 for B, 4.2 for Q)."""
    return f"=?utf-8?q?{_q(text)}?=" if is_q else f"=?utf-8?b?{b64encode(text.encode()).decode('ascii')}?="


def mailbox(name: str, display_name: str, addr_spec: str) -> bytes:
    """Gives a whole field with one mailbox, such as From, ending in CRLF; the name is quoted or encoded where needed.

    Source: RFC 5322, 3.4 (mailbox, quoted-string); RFC 2047, 5 (3) (encoded words in a phrase).
    """
    if not display_name:
        return f"{name}: {addr_spec}\r\n".encode()
    taken = len(name) + 2
    phrase = display_name
    if not _ATOMS.fullmatch(phrase):
        phrase = '"' + phrase.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if not phrase.isascii() or "=?" in phrase or taken + len(phrase) > LINE_LIMIT:
        phrase = _encoded_words(display_name, taken=taken)
    last_line_length = len(phrase.rpartition("\r\n")[2]) + (0 if "\r\n" in phrase else taken)
    gap = " " if last_line_length + len(addr_spec) + 3 <= LINE_LIMIT else "\r\n "
    return f"{name}: {phrase}{gap}<{addr_spec}>\r\n".encode()


@dataclass(frozen=True)
class Headers:
    """The fields that are equal in every message of a campaign version; made once, see `lines`.

    `list_id` is the dotted identifier of RFC 2919, without brackets, None for mail of no list; `list_name` tells the
    list to people, or is empty. `feedback_id` is the value of Feedback-ID: `campaign:account:campaigns:sendonce`.
    Raises: InvalidInput naming the field, for anything else.
    """

    list_id: str | None
    feedback_id: str
    list_name: str = ""
    lines: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("list_id", "feedback_id"):
            value = getattr(self, name)
            if value is not None and (len(value) > 255 or not _DOTTED.fullmatch(value)):
                raise InvalidInput(f"{name} {value!r} can't be used: plain letters, digits and dots only.", field=name)
        if trouble_in(self.list_name):
            raise InvalidInput("A list's name can't hold a line break or control character.", field="list_name")
        if self.list_id is None:
            listed = b""
        elif self.list_name:
            listed = mailbox("List-Id", self.list_name, self.list_id)
        else:
            listed = f"List-Id: <{self.list_id}>\r\n".encode("ascii")
        lines = listed + f"Feedback-ID: {self.feedback_id}\r\n".encode("ascii")
        object.__setattr__(self, "lines", lines)
