"""What is kept of a request: id, type, headers without secrets."""

import hashlib
import json

import pytest

from console.inbox.arrival import LONGEST_ID, MASK, Arrival, Places, read_request

PLACES = Places(id_header="webhook-id", id_path="$.id", type_header="", type_path="$.type")


def _read(body: bytes, headers: dict[str, str] | None = None, *, places: Places = PLACES) -> Arrival:
    return read_request(headers=headers or {}, body=body, places=places, request_id="r", correlation_id="c")


def test_the_header_is_looked_at_before_the_body() -> None:
    body = b'{"id": "evt_body", "type": "order.paid"}'
    both = _read(body, {"webhook-id": "evt_header"})
    assert (both.event_id, both.id_source, both.event_type) == ("evt_header", "header", "order.paid")
    assert (_read(body).event_id, _read(body).id_source) == ("evt_body", "body")


def test_the_type_may_stand_in_a_header() -> None:
    places = Places(id_header="X-GitHub-Delivery", id_path="", type_header="X-GitHub-Event", type_path="")
    read = _read(b"{}", {"x-github-delivery": "d1", "x-github-event": "push"}, places=places)
    assert (read.event_id, read.event_type) == ("d1", "push")


@pytest.mark.parametrize("body", [b"{}", b'{"id": null}', b'{"id": true}', b'{"id": {"a": 1}}',
     b'{"id": " "}', b"not json", b"",
                                  b"\xff", b"[" * 200_000])  # fmt: skip
def test_without_an_id_the_body_is_its_own(body: bytes) -> None:
    read = _read(body)
    assert (read.event_id, read.id_source) == (f"sha256:{hashlib.sha256(body).hexdigest()}", "hash")
    assert _read(body + b" ").event_id != read.event_id


def test_a_number_is_an_id() -> None:
    assert _read(b'{"id": 1001}').event_id == "1001"


@pytest.mark.parametrize(
    "ids", [["a\x00b", "ab", "a\ufffdb"], ["\ud800", "\ud801"], ["x" * 1000 + "1", "x" * 1000 + "2"]]
)
def test_ids_that_cannot_be_kept_as_they_are_stay_different(ids: list[str]) -> None:
    read = [_read(json.dumps({"id": one, "type": one}).encode()) for one in ids]
    assert len({one.event_id for one in read}) == len(ids)
    for one in read:
        assert len(one.event_id) <= LONGEST_ID
        assert len(one.event_type) <= 255
        assert "\x00" not in one.event_id + one.event_type
        (one.event_id + one.event_type).encode()


def test_passwords_and_keys_are_not_kept() -> None:
    secret = {"authorization": "Basic c2hvcDpwYXNz", "cookie": "a=b", "x-api-key": "k1", "x-shop-token": "t1"}
    kept = _read(b"{}", {**secret, "content-type": "application/json", "webhook-signature": "v1,abc"}).headers
    assert {kept[name] for name in secret} == {MASK}
    assert kept["content-type"] == "application/json"
    assert kept["webhook-signature"] == "v1,abc"


def test_headers_are_cut_and_made_fit_to_be_kept() -> None:
    kept = _read(b"{}", {"a": "x" * 100_000, "b": "\x00\ud800", **{f"n{number}": "" for number in range(500)}}).headers
    assert len(kept) == 100
    assert len(kept["a"]) == 2000
    assert kept["b"] == "\ufffd?"
