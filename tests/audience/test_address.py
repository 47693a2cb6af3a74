"""The one rule for addresses."""

import unicodedata

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import given
from hypothesis import strategies as st

from console.audience.address import Address, parse, parse_sender
from console.errors import InvalidInput

ODD = "aZ9.+-_'@ \u00a0\u200b\u00e9\u0301\u0130ß\ufeff\ufffd\x00\"<>(),;:\\xn-"


@pytest.mark.parametrize(
    ("given_text", "email", "email_lower"),
    [
        ("nina@example.com\u00a0", "nina@example.com", "nina@example.com"),
        ("\u200bolga@example.com", "olga@example.com", "olga@example.com"),
        ("\ufeffbo@example.com\u200f", "bo@example.com", "bo@example.com"),
        ("jose\u0301@example.com", "jos\u00e9@example.com", "jos\u00e9@example.com"),
        ("Ann.Lee@Example.COM", "Ann.Lee@example.com", "ann.lee@example.com"),
        ("info@BÜCHER.example.com", "info@bücher.example.com", "info@xn--bcher-kva.example.com"),
        ("o'hara@example.com", "o'hara@example.com", "o'hara@example.com"),
        ("a+b@mail.test", "a+b@mail.test", "a+b@mail.test"),
    ],
)
def test_an_address_is_cleaned_and_made_comparable(given_text: str, email: str, email_lower: str) -> None:
    """C41: invisible characters at the ends go, accents are brought to one form."""
    assert parse(given_text) == Address(email, email_lower)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \u200b ",
        "ann",
        "ann@",
        "@example.com",
        "ann@example",
        "a b@example.com",
        "pa\x00ul@example.com",
        "quin@example.com\ufffd",
        "h6@example.com>\r\nRCPT TO:<spy@example.com",
        "ann@exa\u200bmple.com",
        "ann@[127.0.0.1]",
        '"ann lee"@example.com',
        f"{'a' * 65}@example.com",
        f"a@{'b' * 64}.com",
        f"a@{'.'.join(['b' * 60] * 5)}.com",
    ],
)
def test_what_is_no_address_is_refused_in_words(text: str) -> None:
    """C35, C41: nothing with a line break, NUL or lost character gets in."""
    with pytest.raises(InvalidInput) as refused:
        parse(text)
    assert refused.value.field == "email"
    assert str(refused.value).isprintable()


@given(st.text(ODD, max_size=12), st.sampled_from(["example.com", "Bücher.example.com", "EXAMPLE.net", "x", "a..b"]))
def test_the_compared_form_is_its_own_compared_form(local: str, domain: str) -> None:
    try:
        once = parse(f"{local}@{domain}")
    except InvalidInput:
        return
    assert parse(once.email_lower).email_lower == once.email_lower
    assert parse(once.email) == once
    assert once.email_lower.rpartition("@")[2].isascii()
    assert unicodedata.is_normalized("NFC", once.email_lower)
    assert "\x00" not in once.email


@given(
    st.text("abcXYZ019._+-", max_size=70),
    st.sampled_from(
        ["example.com", "Bücher.test", "a.local", "localhost", "b-.com", "xn--bcher-kva.com", "1.2", "é.é"]
    ),
)
def test_the_short_way_for_plain_addresses_answers_as_the_library_does(local: str, domain: str) -> None:
    text = f"{local}@{domain}"
    try:
        valid = validate_email(text, check_deliverability=False, test_environment=True, strict=True)
        expected = f"{valid.local_part}@{valid.domain}" if "." in valid.domain else None
    except EmailNotValidError:
        expected = None
    try:
        found = parse(text).email
    except InvalidInput:
        found = None
    assert found == expected


@pytest.mark.parametrize(
    ("text", "name", "email"),
    [
        ("news@example.com", "", "news@example.com"),
        ("News <news@example.com>", "News", "news@example.com"),
        ('"Doe, Jane" <jane@example.com>', "Doe, Jane", "jane@example.com"),
        ('"The \\"Best\\"" <jane@example.com>', 'The "Best"', "jane@example.com"),
    ],
)
def test_a_sender_has_a_name_and_an_address(text: str, name: str, email: str) -> None:
    found_name, address = parse_sender(text)
    assert (found_name, address.email) == (name, email)


@pytest.mark.parametrize(
    "text", ["News", "News <news>", "A <a@example.com>, B <b@example.com>", "N\r\nBcc: x <a@b.co>"]
)
def test_what_is_no_sender_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_sender(text)
    assert refused.value.field == "sender"
