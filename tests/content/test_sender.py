"""The sender: one mailbox, its name maybe with merge fields, its address never."""

import pytest

from console.content.sender import Sender, parse_sender
from console.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "sender"),
    [
        ("news@example.com", Sender("", "news@example.com", False)),
        ("  Ann Lee <news@example.com> ", Sender("Ann Lee", "news@example.com", False)),
        ('"Lee, Ann" <news@example.com>', Sender("Lee, Ann", "news@example.com", False)),
        ("Zoë <news@bücher.example.com>", Sender("Zoë", "news@xn--bcher-kva.example.com", False)),
        ("josé@example.com", Sender("", "josé@example.com", True)),
        ("{{ clerk }} <news@example.com>", Sender("{{ clerk }}", "news@example.com", False)),
        ('"{{ x | d("a, b") }}" <news@example.com>', Sender('{{ x | d("a, b") }}', "news@example.com", False)),
    ],
)
def test_a_sender_is_read(text: str, sender: Sender):
    assert parse_sender(text) == sender


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ann",
        "a@example.com, b@example.com",
        "Lee, Ann <news@example.com>",
        "Ann <a@example.com> <b@example.com>",
        "Ann <a@example.com>\r\nBcc: b@example.com",
        "Ann\n<a@example.com>",
        "a@b@example.com",
        "<>",
        "us: a@example.com;",
        "Ann <{{ address }}>",
        "{{address}}@example.com",
        "Ann <{{address}}@example.com>",
        "{{ address }}",
        "Ann <a@{{ domain }}>",
        "{{ x }} <a@example.com",
        "a@-example.com",
        "a b@example.com",
        "Ann <news@example.com> and more",
    ],
)
def test_anything_else_is_refused(text: str):
    with pytest.raises(InvalidInput) as caught:
        parse_sender(text)
    assert caught.value.field == "sender"
