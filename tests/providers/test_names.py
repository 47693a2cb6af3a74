"""What a send is called towards providers: stable, never shared, and it leads back."""

import re
import uuid

import pytest

from console.providers.names import names_of, tagged_send_id


def test_a_send_has_the_same_names_in_every_attempt() -> None:
    assert names_of(1, 7, "<a@example.com>") == names_of(1, 7, "<a@example.com>")


@pytest.mark.parametrize("other", [(2, 7, "<a@example.com>"), (1, 8, "<a@example.com>"), (1, 7, "<b@example.com>")])
def test_no_two_sends_share_a_name(other: tuple[int, int, str]) -> None:
    """Also when a new database counts from 1 again behind the same account of a provider."""
    one, two = names_of(1, 7, "<a@example.com>"), names_of(*other)
    assert one.key != two.key
    assert one.tag != two.tag


def test_the_key_is_a_uuid_and_the_tag_fits_everywhere() -> None:
    names = names_of(2**62, 2**63 - 1, "<a@example.com>")
    assert str(uuid.UUID(names.key)) == names.key
    assert re.fullmatch("[A-Za-z0-9_-]{1,256}", names.tag)


def test_a_tag_leads_back_to_the_send() -> None:
    assert tagged_send_id(names_of(1, 7, "<a@example.com>").tag) == 7


@pytest.mark.parametrize("tag", ["", "news", "so-", "so-x-0123456789abcdef", "so-7-short", "so-7-0123456789abcdef "])
def test_a_strangers_tag_leads_nowhere(tag: str) -> None:
    assert tagged_send_id(tag) is None
