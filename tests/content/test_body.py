"""Quoted-printable: any text comes back from the bytes, however it is cut into pieces."""

import re
from quopri import decodestring

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.content import body
from console.content.body import PartTooLong, piece, quoted_printable

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=300) | st.text("aé=. \t\n", max_size=300)


def with_crlf(text: str) -> bytes:
    return re.sub(r"\r\n|\r|\n", "\n", text).replace("\n", "\r\n").encode()


def check_lines(encoded: bytes) -> None:
    for line in encoded.split(b"\r\n"):
        assert len(line) <= 76
        assert b"\r" not in line
        assert b"\n" not in line
        assert not line.endswith((b" ", b"\t"))
        assert not line.startswith(b"From ")
        assert all(byte == 9 or 32 <= byte < 127 for byte in line)


@given(TEXT)
@example("a" * 74 + " \nx")
@example("a" * 76)
@example("a" * 75 + "=" + "b")
@example("From me\nFrom you\n" + "From " * 40)
@example("start\r\n.\n..two\r.three\nhttps://example.com/?k=" + "a" * 1470 + "\nÄÖ€")
@example("x\x00\x0b\x0c\x85\u2028y")
def test_any_text_comes_back_exactly(text: str):
    """C36"""
    encoded = quoted_printable([text], {})
    assert decodestring(encoded) == with_crlf(text)
    check_lines(encoded)


@given(st.lists(TEXT.filter(lambda text: "\r" not in text), max_size=8))
@example(["a" * 76, "b"])
@example(["a" * 73 + "=", "b"])
@example(["a ", "\nb"])
@example(["x\nFr", "om ", "you"])
@example(["x\nFrom", " you"])
@example(["a" * 70, "b" * 5, "\n", "", "c"])
def test_pieces_give_the_text_that_they_make_together(chunks: list[str]):
    known = {chunk: piece(chunk) for chunk in chunks[::2]}
    encoded = quoted_printable(chunks, known)
    assert decodestring(encoded) == with_crlf("".join(chunks))
    check_lines(encoded)
    assert encoded == quoted_printable(chunks, {})


def test_a_part_is_given_up_as_soon_as_it_is_too_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(body, "PART_BYTES_LIMIT", 100)
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield "0123456789"

    with pytest.raises(PartTooLong):
        quoted_printable(endless(), {})
    assert len(taken) == 11
