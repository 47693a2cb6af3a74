"""Body parts as quoted-printable bytes, put together from pieces. Knows text and octets, not templates.

A template's fixed text is encoded once, when it is compiled; per recipient only the values are. It is always
quoted-printable, never 7bit, also where all is ASCII: that is safe against relays that strip blanks or mark `From `
lines, no value can make a line too long, and a message's form does not depend on what the values happen to be.
"""

import re
from binascii import b2a_qp
from collections.abc import Iterable, Mapping

PART_BYTES_LIMIT = 1_000_000

# The longest line (RFC 2045, 6.7) without the `=` that a soft line break puts at its end.
_ROOM = 75
_SOFT_BREAK = b"=\r\n"
_LONE_CR = re.compile(r"\r\n?")
# b2a_qp turns a blank at a line's end into three octets without counting them: the line may grow to 77.
_OVERLONG = re.compile(rb"(?m)^(.{74})(=(?:20|09)\r)$")
_FROM = re.compile(rb"(?m)^From ")


class PartTooLong(ValueError):
    """A part grew over PART_BYTES_LIMIT."""


# Encoded text that may stand between any others, and how many octets its first and its last line have; the last is
# None when there is only one line. A plain tuple: one is made per value, and a named one takes three times as long.
Piece = tuple[bytes, int, int | None]


def piece(text: str) -> Piece:
    """Gives a text as a piece; CRLF, LF and a lone CR all are a line's end. A blank at its end is always encoded."""
    if len(text) < _ROOM and text.isascii() and text.isprintable() and "=" not in text and text[-1:] != " ":
        return text.encode(), len(text), None
    if "\r" in text:
        text = _LONE_CR.sub("\n", text)
    if "\n" not in text:
        # Without a line's end to copy b2a_qp writes its soft ones as LF.
        encoded = b2a_qp(text.encode()).replace(b"\n", b"\r\n")
    else:
        encoded = b2a_qp(text.replace("\n", "\r\n").encode())
        if b"=20\r\n" in encoded or b"=09\r\n" in encoded:
            encoded = _OVERLONG.sub(rb"\1=\r\n\2", encoded)
    tail = len(encoded) - encoded.rfind(b"\n") - 1
    if tail > _ROOM:
        cut = len(encoded) - (3 if encoded[-3:-2] == b"=" else 1)
        encoded = encoded[:cut] + _SOFT_BREAK + encoded[cut:]
        tail = len(encoded) - encoded.rfind(b"\n") - 1
    end = encoded.find(b"\r")
    return (encoded, tail, None) if end < 0 else (encoded, end, tail)


def quoted_printable(chunks: Iterable[str], pieces: Mapping[str, Piece]) -> bytes:
    """Gives a body part in quoted-printable, CRLF only, no line over 76 octets.

    Takes:  chunks, the part's text in order; pieces, those of them that are known already.
    Shape:  decoding gives exactly the text's UTF-8 back, with CRLF for each of its line ends. Lines that begin with
            `From ` are broken up, so that no mbox file puts a `>` before them.
    Raises: PartTooLong, as soon as it is; UnicodeEncodeError for a lone surrogate.
    Source: RFC 2045, 6.7; RFC 4155 for `From `.
    """
    written: list[bytes] = []
    column = size = 0
    for chunk in chunks:
        encoded, head, tail = pieces.get(chunk) or piece(chunk)
        if column and column + head > _ROOM:
            written.append(_SOFT_BREAK)
            column = 0
        written.append(encoded)
        column = column + head if tail is None else tail
        size += len(encoded)
        if size > PART_BYTES_LIMIT:
            raise PartTooLong(f"a part grows over {PART_BYTES_LIMIT:,} bytes")
    part = b"".join(written)
    return _FROM.sub(b"=46=\r\nrom ", part) if b"From " in part else part
