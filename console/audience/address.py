"""The one rule for addresses: what is an address, and when are two of them the same. Pure.

1. Blanks and invisible characters at both ends are dropped (they come along when an address is copied).
2. Unicode is brought to NFC, so that a letter with its accent is one character however it was typed.
3. The syntax is checked by email-validator, without DNS: local part with SMTPUTF8, no quotes, no comments, no
   domain literals; the domain needs a dot and must be valid by IDNA 2008 (UTS 46).
4. `email`, the form that mail goes to, keeps the case of the local part as it was given; its domain is in lower case.
5. `email_lower`, the form that is compared and unique, is in lower case, its domain in A-labels (xn--...).
Dots and +tags count: whether a provider ignores them is not ours to know.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from email_validator import EmailNotValidError, ValidatedEmail, validate_email

from console.errors import InvalidInput

# Besides white space: soft hyphen, zero-width characters and direction marks, word joiner, byte-order mark.
_ENDS = "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
_TRIM = re.compile(rf"^[\s{_ENDS}]+|[\s{_ENDS}]+$")
_SENDER = re.compile(r"(?P<name>[^<>]*)<(?P<address>[^<>]*)>")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

# Local parts that no rule forbids: for them only the domain is asked about, once, which makes 200,000 addresses of an
# import take 1 s instead of 8 s. tests/audience/test_address.py holds both ways to the same answers.
_PLAIN_LOCAL = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*")
_PLAIN_CHARACTERS = 150  # well below the 254 that count after the domain is in A-labels


@dataclass(frozen=True, slots=True)
class Address:
    """An address as mail goes to it, and as it is compared."""

    email: str
    email_lower: str

    @property
    def domain(self) -> str:
        """The domain in A-labels, lower case."""
        return self.email_lower.rpartition("@")[2]


def trim(text: str) -> str:
    """Gives the text without blanks and invisible characters at its ends."""
    return _TRIM.sub("", text)


def parse(address: str) -> Address:
    """Gives the address by the rule above.

    Raises: InvalidInput (field email) saying what is wrong with it.
    Source: RFC 5321, 4.1.2 and 4.5.3.1; RFC 6531, 3.3; RFC 5891.
    """
    text = unicodedata.normalize("NFC", trim(address))
    if not text:
        raise InvalidInput("The address is empty.", field="email")
    local, _, domain = text.rpartition("@")
    if _PLAIN_LOCAL.fullmatch(local) and len(text) <= _PLAIN_CHARACTERS:
        plain = _domain(domain)
        if plain is not None:
            return Address(email=f"{local}@{plain[0]}", email_lower=f"{local.lower()}@{plain[1]}")
    valid = _validated(text)
    # Lower case may take letters apart again (U+0130), hence NFC once more.
    local_lower = unicodedata.normalize("NFC", valid.local_part.lower())
    return Address(email=f"{valid.local_part}@{valid.domain}", email_lower=f"{local_lower}@{valid.ascii_domain}")


def parse_sender(text: str) -> tuple[str, Address]:
    """Gives name and address of a From field: `Name <address>`, `"Name, with comma" <address>` or an address alone.

    Gives:  the name, empty when there is none.
    Raises: InvalidInput (field sender).
    """
    trimmed = trim(text)
    if any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in trimmed):
        raise InvalidInput("The sender has a line break or control character in it; remove it.", field="sender")
    match = _SENDER.fullmatch(trimmed)
    try:
        if match is None:
            return "", parse(trimmed)
        return _name(match["name"]), parse(match["address"])
    except InvalidInput as error:
        message = f"The sender must be an address or Name <address>. {error}"
        raise InvalidInput(message, field="sender") from None


def _name(text: str) -> str:
    name = unicodedata.normalize("NFC", trim(text))
    quoted = _QUOTED.fullmatch(name)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else name


@lru_cache(maxsize=4096)
def _domain(text: str) -> tuple[str, str] | None:
    """Gives the domain for showing and in A-labels, None when it is not valid."""
    try:
        valid = _validated(f"a@{text}")
    except InvalidInput:
        return None
    return valid.domain, valid.ascii_domain or valid.domain


def _validated(text: str) -> ValidatedEmail:
    try:
        valid = validate_email(text, check_deliverability=False, test_environment=True, strict=True)
    except EmailNotValidError as error:
        raise InvalidInput(f"The address {_shown(text)} is not valid: {error}", field="email") from None
    if "." not in valid.domain:
        raise InvalidInput(f"The address {_shown(text)} is not valid: its domain has no dot.", field="email")
    return valid


def _shown(text: str) -> str:
    cut = text if len(text) <= 80 else text[:80] + "…"
    return "".join(character if character.isprintable() else "�" for character in cut)
