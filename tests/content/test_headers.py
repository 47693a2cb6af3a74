"""Header fields: what is decoded from the bytes is what went in, and no value breaks out of its line."""

import re
from base64 import b64decode
from email import policy
from email.header import decode_header, make_header
from email.parser import BytesParser
from quopri import decodestring

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.content.header import Headers, mailbox, trouble_in, unstructured
from console.errors import InvalidInput

ENCODED_WORD = re.compile(r"=\?utf-8\?([bq])\?([^?\s]*)\?=")

LONG_SUBJECTS = (
    "Rechnung für März ist da – bitte prüfen: Übersicht Kundenkonto Nummer 4711 und Zahlungsplan für Österreich",
    "a" * 70 + "é" + " ende",
    "🎉" * 40,
)

HEADER_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=200)


def decoded(field: bytes) -> str:
    """Decodes one unstructured field by RFC 2047 alone: unfold, drop white space between words, decode each word."""
    value = field.decode("ascii").replace("\r\n", "").partition(": ")[2]
    value = re.sub(r"\?=[ \t]+=\?", "?==?", value)

    def word(match: re.Match[str]) -> str:
        kind, content = match.groups()
        raw = b64decode(content) if kind == "b" else decodestring(content.encode(), header=True)
        return raw.decode("utf-8")

    return ENCODED_WORD.sub(word, value)


def parsed(field: bytes):
    return BytesParser(policy=policy.default).parsebytes(field + b"\r\n")


@pytest.mark.parametrize("subject", LONG_SUBJECTS)
def test_a_long_subject_with_accents_keeps_its_spaces(subject: str):
    """C32"""
    field = unstructured("Subject", subject)
    assert decoded(field) == subject
    assert str(make_header(decode_header(field.decode("ascii").partition(": ")[2].rstrip("\r\n")))) == subject
    assert parsed(field)["Subject"] == subject
    assert b"?==?" not in field
    for line in field.rstrip(b"\r\n").split(b"\r\n"):
        assert len(line) <= 78
    for word in re.findall(rb"=\?\S+\?=", field):
        assert len(word) <= 75
        decoded(b"X: " + word)  # raises when a character is cut in two


@given(
    HEADER_TEXT
    | st.lists(st.sampled_from(["", "a", "word", "x" * 20, "x" * 76]), min_size=1).map(" ".join).filter(bool)
)
@example("ends with a blank ")
@example(" begins with one")
@example("two  blanks")
@example("=?utf-8?q?looks_encoded?=")
@example("x" * 300)
@example("word " * 60 + "end")
@example("é")
@example("a" * 69 + "  " + "x" * 77)
@example("a" * 60 + "  " + "x" * 40)
def test_any_subject_comes_back_exactly(subject: str):
    field = unstructured("Subject", subject)
    assert decoded(field) == subject
    lines = field.split(b"\r\n")
    assert lines.pop() == b""
    assert all(0 < len(line) <= 78 for line in lines)
    assert not any(line.endswith(b" ") for line in lines)  # relays strip such blanks
    assert lines[0] != b"Subject:"
    assert all(line.startswith(b" ") and line.strip() for line in lines[1:])
    assert not re.search(rb"[\r\n]", b"".join(lines))


@given(
    st.lists(
        st.sampled_from(["Ann", "Lee,", "Zoë", '"Z"', "(x)", "o'", "\\", "@", "Grüße", "a" * 60, "李"]), min_size=1
    )
)
@example(["Smith, John"])
def test_any_sender_name_comes_back_exactly(words: list[str]):
    name = " ".join(words)
    field = mailbox("From", name, "news@example.com")
    addresses = parsed(field)["From"].addresses
    assert [address.addr_spec for address in addresses] == ["news@example.com"]
    if b"=?" in field:
        # Python 3.11's own parser puts a blank between two encoded words of a name, against RFC 2047, 6.2.
        assert decoded(field).removesuffix("\r\n") == f"{name} <news@example.com>"
    else:
        assert addresses[0].display_name == name
    assert all(len(line) <= 78 for line in field.split(b"\r\n"))


def test_a_plain_subject_is_left_as_it_is():
    assert unstructured("Subject", "Your order 4711") == b"Subject: Your order 4711\r\n"


def test_a_name_with_a_comma_is_quoted():
    assert mailbox("From", "Lee, Ann", "news@example.com") == b'From: "Lee, Ann" <news@example.com>\r\n'


@pytest.mark.parametrize(
    ("value", "trouble"),
    [
        ("a\r\nBcc: x", "line break"),
        ("a\nb", "line break"),
        ("a\rb", "line break"),
        ("a\u2028b", "line break"),
        ("a\x85b", "line break"),
        ("a\x0bb", "line break"),
        ("a\x0cb", "line break"),
        ("a\x00b", "control character"),
        ("a\tb", "control character"),
        ("a\x7fb", "control character"),
        ("a\u00a0b", None),
        ("a\u3000b", None),
        ("Zoë 🎉", None),
    ],
)
def test_controls_and_line_separators_are_trouble(value: str, trouble: str | None):
    """C35"""
    assert trouble_in(value) == trouble


@pytest.mark.parametrize("value", ["a b", "a\r\nBcc: x", "ä", "<a>", ""])
def test_a_list_id_or_feedback_id_that_could_break_the_header_is_refused(value: str):
    with pytest.raises(InvalidInput):
        Headers(list_id=value, feedback_id="a:b")
    with pytest.raises(InvalidInput):
        Headers(list_id="l.example.com", feedback_id=value)


def test_a_list_has_an_id_and_may_have_a_name():
    assert Headers(list_id="l1.example.com", feedback_id="7:t1").lines == (
        b"List-Id: <l1.example.com>\r\nFeedback-ID: 7:t1\r\n"
    )
    assert Headers(list_id="l1.example.com", feedback_id="7:t1", list_name="Our news").lines.startswith(
        b"List-Id: Our news <l1.example.com>\r\n"
    )
