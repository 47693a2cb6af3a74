"""Body parts as quoted-printable bytes. Knows text and octets, not templates."""

import re
from binascii import b2a_qp

_LONE_CR = re.compile(r"\r\n?")
# b2a_qp turns a blank at a line's end into three octets without counting them: the line may grow to 77.
_OVERLONG = re.compile(rb"(?m)^(.{74})(=(?:20|09)\r)$")
_FROM = re.compile(rb"(?m)^From ")


def quoted_printable(text: str) -> bytes:
    """Gives a body part in quoted-printable, CRLF only, ending in CRLF, no line over 76 octets.

    Takes:  text with any line ends (CRLF, LF, lone CR): they all count as a line's end.
    Shape:  decoding gives the text's UTF-8 back with CRLF for each of its line ends, plus one at the end if it had
            none. Lines that begin with `From ` are broken up, so that no mbox file puts a `>` before them.
    Source: RFC 2045, 6.7; RFC 4155 for `From `.
    """
    if "\r" in text:
        text = _LONE_CR.sub("\n", text)
    if not text.endswith("\n"):
        text += "\n"
    # b2a_qp takes the first line's end as the model for all of them, soft ones too; hence CRLF first.
    encoded = b2a_qp(text.replace("\n", "\r\n").encode())
    if b"=20\r\n" in encoded or b"=09\r\n" in encoded:
        encoded = _OVERLONG.sub(rb"\1=\r\n\2", encoded)
    if b"From " in encoded:
        encoded = _FROM.sub(b"=46rom =\r\n", encoded)
    return encoded
