"""The parts that HTTP APIs get, read back from the bytes that our own content writes."""

import make
import pytest

from console.content.fill import fill
from console.providers.base import Message
from console.providers.parts import Parts, parts_of


def parts(**changes: str) -> Parts:
    values = {"first_name": changes.pop("first_name", "Rita")}
    filled = fill(make.content(**changes), make.recipient(values), make.list_headers())
    return parts_of(Message(filled.mail_from, filled.rcpt_to, filled.wire))


def test_the_parts_are_those_that_were_written() -> None:
    found = parts(first_name="Zoë 𝒳", html="<p>Hello {{ first_name }}</p>\n", text="Hello {{ first_name }}\n")
    assert found.subject == "News for Zoë 𝒳"
    assert found.html is not None
    assert "<p>Hello Zoë 𝒳</p>" in found.html
    assert found.text is not None
    assert found.text.startswith("Hello Zoë 𝒳\n")
    assert "\r" not in found.html + found.text
    assert (found.sender.name, found.sender.address) == ("Ann Lee", "news@example.com")
    assert found.recipient.address == "rita@example.com"


def test_headers_come_whole_and_without_those_that_an_api_has_fields_for() -> None:
    headers = dict(parts().headers)
    assert headers["List-Unsubscribe"] == "<https://console.example.com/audience/unsubscribe/abc>"
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert headers["Message-ID"] == "<0123456789abcdef@mail.example.com>"
    lower = {name.lower() for name in headers}
    assert not lower & {"from", "to", "subject", "date", "mime-version", "content-type", "content-transfer-encoding"}


def test_a_long_subject_is_unfolded() -> None:
    subject = "Ein langer Betreff mit Umlauten äöü, " * 6 + "Ende"
    assert parts(subject=subject).subject == subject


@pytest.mark.parametrize(
    ("sender", "line"),
    [
        ("Ann Lee <news@example.com>", '"Ann Lee" <news@example.com>'),
        ('"Lee, Ann" <news@example.com>', '"Lee, Ann" <news@example.com>'),
        ("news@example.com", "news@example.com"),
    ],
)
def test_the_senders_name_is_quoted(sender: str, line: str) -> None:
    assert parts(sender=sender).sender_line == line


@pytest.mark.parametrize("wire", [b"", b"Subject: x\r\n\r\nHello\r\n", b"From: <>\r\n\r\nHello\r\n"])
def test_a_message_that_is_none_is_refused(wire: bytes) -> None:
    with pytest.raises(ValueError, match="sender or no body"):
        parts_of(Message("a@example.com", "b@example.com", wire))
