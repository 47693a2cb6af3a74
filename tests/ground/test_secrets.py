"""Secrets that the database holds: read back with the key, of no use without it."""

import pytest

from console.errors import ConfigError
from console.secrets import seal, unseal

KEY = "a key of the installation"


@pytest.mark.parametrize("text", ["whsec_abc", "", "pässword – ünïcode", "x" * 10_000])
def test_a_sealed_secret_is_read_back(text: str) -> None:
    assert unseal(KEY, seal(KEY, text)) == text


def test_a_sealed_secret_shows_nothing_of_it() -> None:
    sealed = seal(KEY, "swordfish")
    assert "swordfish" not in sealed
    assert sealed.isascii()
    assert seal(KEY, "swordfish") != sealed


def test_another_key_is_told_as_a_wrong_setting_that_shows_no_secret() -> None:
    sealed = seal(KEY, "swordfish")
    with pytest.raises(ConfigError, match="SENDONCE_SECRET_KEY") as told:
        unseal("another key of the installation", sealed)
    assert sealed not in str(told.value)
    assert "swordfish" not in str(told.value)


@pytest.mark.parametrize("place", [0, 20, -5])
def test_a_changed_secret_is_refused(place: int) -> None:
    sealed = list(seal(KEY, "swordfish"))
    sealed[place] = "A" if sealed[place] != "A" else "B"
    with pytest.raises(ConfigError):
        unseal(KEY, "".join(sealed))


@pytest.mark.parametrize("sealed", ["", "swordfish", "ü", "gAAAA"])
def test_what_was_never_sealed_is_refused(sealed: str) -> None:
    with pytest.raises(ConfigError):
        unseal(KEY, sealed)
