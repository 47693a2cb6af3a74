"""POST /inbox/<endpoint>/<token>: verified, stored first, counted when it comes again."""

import base64
import hashlib
import hmac
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import post
import pytest
import visit
from sqlalchemy import Engine, text

from console import clock, logs
from console.db import make_engine, transaction
from console.inbox import queue_store
from console.inbox.service import Made

_VARYING = {"date", "set-cookie", "x-request-id", "x-correlation-id"}
EVENTS = "SELECT event_id, id_source, event_type, delivery_count, status FROM inbox_events ORDER BY id"
BODY = {"id": "evt_1", "type": "order.paid", "data": {"email": "rita@example.com"}}


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def test_an_event_is_stored_as_it_came_and_queued(office: visit.Office) -> None:
    made = post.endpoint(office)
    body = b'{"id": "evt_1",  "type": "order.paid"}\r\n'
    answer = post.event(office.app, made, body, headers={"X-Request-ID": "req-1", "X-Correlation-ID": "corr-1"})
    assert answer.status_code == 200
    assert answer.json == {"status": "stored", "id": answer.json["id"], "event_id": "evt_1", "delivery_count": 1}
    assert answer.headers["X-Request-ID"] == "req-1"
    assert post.rows(office, EVENTS) == [("evt_1", "body", "order.paid", 1, "stored")]
    [row] = post.rows(office, "SELECT body, body_bytes, headers, request_id, correlation_id FROM inbox_events")
    assert bytes(row.body) == body
    assert row.body_bytes == len(body)
    assert (row.request_id, row.correlation_id) == ("req-1", "corr-1")
    assert row.headers["content-type"] == "application/json"
    assert post.rows(office, "SELECT reader FROM inbox_queue") == [("rules",)]


def test_a_redelivery_is_counted_on_the_first_row_and_kept_for_the_timeline(office: visit.Office) -> None:
    made = post.endpoint(office)
    post.event(office.app, made, BODY, headers={"X-Request-ID": "req-1"})
    with transaction(office.engine) as session:
        session.execute(text("DELETE FROM inbox_queue"))  # as if it had been read
    answer = post.event(office.app, made, BODY, headers={"X-Request-ID": "req-2"})
    assert (answer.status_code, answer.json["status"], answer.json["delivery_count"]) == (200, "duplicate", 2)
    post.event(office.app, made, {**BODY, "data": {}}, headers={"X-Request-ID": "req-3"})
    assert [row.delivery_count for row in post.rows(office, EVENTS)] == [3]
    assert post.rows(office, "SELECT request_id, is_same_body FROM inbox_redeliveries ORDER BY id") == [
        ("req-2", True),
        ("req-3", False),
    ]
    [row] = post.rows(office, "SELECT request_id, body, last_received_at > received_at AS later FROM inbox_events")
    assert (row.request_id, json.loads(bytes(row.body)), row.later) == ("req-1", BODY, True)
    # A redelivery waits for nobody.
    assert post.rows(office, "SELECT 1 FROM inbox_queue") == []


def test_twenty_deliveries_at_once_are_one_event_that_came_twenty_times(office: visit.Office) -> None:
    """C53: ten in parallel and more; every answer is 2xx, one says that it was first."""
    made = post.endpoint(office)
    gate = threading.Barrier(20)
    engine = make_engine(office.engine.url.render_as_string(hide_password=False), pool_size=20)
    app = visit.site(engine)

    def deliver(number: int):
        gate.wait()
        return post.event(app, made, BODY, headers={"X-Request-ID": f"req-{number}"})

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(deliver, range(20)))
    engine.dispose()
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.json["delivery_count"] for answer in answers) == list(range(1, 21))
    assert [answer.json["status"] for answer in answers].count("stored") == 1
    assert [row.delivery_count for row in post.rows(office, EVENTS)] == [20]
    [(request_ids, queued)] = post.rows(
        office,
        "SELECT (SELECT count(DISTINCT request_id) FROM (SELECT request_id FROM inbox_events UNION ALL"
        " SELECT request_id FROM inbox_redeliveries) x), (SELECT count(*) FROM inbox_queue)",
    )
    assert (request_ids, queued) == (20, 1)


def test_the_same_id_at_another_endpoint_or_account_is_another_event(office: visit.Office) -> None:
    """C53: the other tenant's event is stored too."""
    other = visit.office(office.engine, slug="other", app=office.app)
    for made in (post.endpoint(office), post.endpoint(office, name="billing"), post.endpoint(other)):
        assert post.event(office.app, made, BODY).json["status"] == "stored"
    assert len(post.rows(office, EVENTS)) == 3


def test_an_event_without_an_id_is_the_same_when_its_body_is(office: visit.Office) -> None:
    made = post.endpoint(office)
    assert post.event(office.app, made, {"type": "ping"}).json["status"] == "stored"
    assert post.event(office.app, made, {"type": "ping"}).json["status"] == "duplicate"
    assert post.event(office.app, made, {"type": "ping", "n": 1}).json["status"] == "stored"
    assert [row.id_source for row in post.rows(office, EVENTS)] == ["hash", "hash"]


@pytest.mark.parametrize(
    "body",
    [b"", b"order=1&total=2", b"\x00\xff\xfe", b"[" * 100_000,
     b'{"id": "a\\u0000b", "type": "\\ud800"}', b'{"id": "' + b"x" * 5000 + b'"}',
     b"[1, 2, 3]", b"null"],
)  # fmt: skip
def test_whatever_comes_is_stored(office: visit.Office, body: bytes) -> None:
    made = post.endpoint(office)
    for status in ("stored", "duplicate"):
        answer = post.event(office.app, made, body)
        assert (answer.status_code, answer.json["status"]) == (200, status)
    [row] = post.rows(office, "SELECT body FROM inbox_events")
    assert bytes(row.body) == body


def _refusals(office: visit.Office) -> list:
    return post.rows(office, "SELECT reason, refused_count FROM inbox_refusals ORDER BY reason")


def test_a_body_over_one_megabyte_is_413_and_counted(office: visit.Office) -> None:
    """C58 (h); an array of 3 MB."""
    made = post.endpoint(office)
    array = json.dumps(["x" * 98] * 30_000).encode()
    assert len(array) > 3_000_000
    answer = post.event(office.app, made, array)
    assert answer.status_code == 413
    assert answer.mimetype == "application/problem+json"
    assert "1 MB" in answer.json["detail"]
    assert post.event(office.app, made, b"x" * (1024 * 1024 + 1)).status_code == 413
    assert post.event(office.app, made, b"x" * (1024 * 1024)).status_code == 200
    assert [row.delivery_count for row in post.rows(office, EVENTS)] == [1]
    assert _refusals(office) == [("the body is over 1 MB", 2)]


def test_a_signed_event_is_taken_and_a_forged_one_is_401_counted_and_not_stored(office: visit.Office) -> None:
    """C58."""
    made = post.endpoint(office, scheme="standard_webhooks", secret=post.WEBHOOK_SECRET)
    body = b'{"b": 1, "a":"Z\\u00fcrich","n":1.0}\r\n'
    good = post.signed(body, event_id="msg_1")
    assert post.event(office.app, made, body, headers=good).json["event_id"] == "msg_1"
    late = post.signed(body, event_id="msg_1", at=clock.now() - timedelta(minutes=10))
    for headers, sent in ((good, body[:-2]), (good, json.dumps(json.loads(body)).encode()), (late, body), ({}, body)):
        answer = post.event(office.app, made, sent, headers=headers)
        assert answer.status_code == 401
        assert answer.json["detail"].startswith("Not taken: ")
    # A genuine redelivery: signed anew.
    again = post.signed(body, event_id="msg_1", at=clock.now() - timedelta(minutes=1))
    assert post.event(office.app, made, body, headers=again).json["status"] == "duplicate"
    assert [row.delivery_count for row in post.rows(office, EVENTS)] == [2]
    assert _refusals(office) == [
        ("signed more than 5 minutes ago", 1),
        ("the signature is missing", 1),
        ("the signature is wrong", 2),
    ]


def test_a_plain_hmac_and_basic_are_verified_too(office: visit.Office) -> None:
    github = post.endpoint(
        office, name="github", scheme="hmac_sha256", secret="s1", signature_header="X-Hub-Signature-256",
        signature_prefix="sha256=", event_id_header="X-GitHub-Delivery", event_type_header="X-GitHub-Event",
    )  # fmt: skip
    digest = hmac.new(b"s1", b"{}", hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Delivery": "d1", "X-GitHub-Event": "push"}
    assert post.event(office.app, github, b"{}", headers=headers).json["event_id"] == "d1"
    assert post.event(office.app, github, b"{ }", headers=headers).status_code == 401
    basic = post.endpoint(office, name="basic", scheme="basic", secret="shop:pass")
    authorization = {"Authorization": "Basic " + base64.b64encode(b"shop:pass").decode()}
    assert post.event(office.app, basic, BODY, headers=authorization).status_code == 200
    refused = post.event(office.app, basic, BODY)
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="inbox"')
    kept = json.dumps([row.headers for row in post.rows(office, "SELECT headers FROM inbox_events")])
    assert "c2hvcDpwYXNz" not in kept


def test_a_wrong_address_looks_like_one_that_there_is_not(office: visit.Office) -> None:
    made = post.endpoint(office)
    closed = post.endpoint(office, name="closed")
    with transaction(office.engine) as session:
        session.execute(text("UPDATE inbox_endpoints SET is_active = false WHERE name = 'closed'"))
    wrong = [
        Made(endpoint_id=0, name="shop", token="A" * 43),
        Made(endpoint_id=0, name="nobody", token="A" * 43),
        Made(endpoint_id=0, name="nobody", token=made.token),
        Made(endpoint_id=0, name="closed", token=made.token),
        closed,
        Made(endpoint_id=0, name="shop", token="short"),
    ]
    seen = set()
    for one in wrong:
        for body in (b"{}", b"x" * 2_000_000):
            answer = post.event(office.app, one, body)
            headers = {name: value for name, value in answer.headers if name.lower() not in _VARYING}
            seen.add((answer.status_code, answer.get_data(), json.dumps(headers)))
    assert len(seen) == 1
    assert next(iter(seen))[0] == 404
    assert post.rows(office, EVENTS) == []
    assert _refusals(office) == []


def test_while_the_database_is_away_the_sender_is_asked_to_come_again() -> None:
    app = visit.site(make_engine("postgresql://nobody@127.0.0.1:1/none"))
    answer = post.event(app, Made(endpoint_id=1, name="shop", token="A" * 43), b"{}")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "30"
    assert answer.mimetype == "application/problem+json"


def test_an_event_that_can_not_be_stored_is_not_answered_with_2xx(office: visit.Office) -> None:
    made = post.endpoint(office)
    with transaction(office.engine) as session:
        session.execute(text("ALTER TABLE inbox_events ADD CONSTRAINT broken CHECK (event_id <> 'evt_1')"))
    assert post.event(office.app, made, BODY).status_code == 503
    assert post.rows(office, "SELECT 1 FROM inbox_queue") == []


def test_a_secret_sealed_with_another_key_is_our_fault_not_the_senders(office: visit.Office) -> None:
    made = post.endpoint(office, scheme="standard_webhooks", secret=post.WEBHOOK_SECRET)
    body = b"{}"
    app = visit.site(office.engine, secret_key="another-key-" + "k" * 32)
    answer = post.event(app, made, body, headers=post.signed(body, event_id="m"))
    assert answer.status_code == 503
    assert "SECRET_KEY" not in answer.get_data(as_text=True)


def test_nobody_waits_for_the_reader_of_an_event(office: visit.Office) -> None:
    """C56: the answer comes while the event is being read, however long that takes."""
    made = post.endpoint(office)
    post.event(office.app, made, BODY)
    with ThreadPoolExecutor(1) as pool, transaction(office.engine) as reader:
        assert queue_store.take(reader, reader="rules") is not None
        answer = pool.submit(post.event, office.app, made, BODY).result(timeout=5)
        assert answer.json is not None
        assert answer.json["status"] == "duplicate"


def test_the_secret_parts_are_kept_hashed_and_sealed(office: visit.Office) -> None:
    made = post.endpoint(office, scheme="basic", secret="shop:very-secret")
    for table in ("inbox_endpoints", "audit_entries"):
        # As text: a row's repr leaves out the middle of what is long.
        kept = " ".join(row.kept for row in post.rows(office, f"SELECT to_jsonb(t)::text AS kept FROM {table} t"))
        assert made.name in kept
        assert made.token not in kept
        assert "very-secret" not in kept


def test_a_trace_is_followed_when_there_is_no_correlation_id(office: visit.Office) -> None:
    made = post.endpoint(office)
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    post.event(office.app, made, BODY, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    post.event(office.app, made, {"id": 2}, headers={"X-Correlation-ID": "bad id\u00e9", "X-Request-ID": "x" * 1000})
    first, second = post.rows(office, "SELECT correlation_id, request_id FROM inbox_events ORDER BY id")
    assert first.correlation_id == trace
    assert len(second.correlation_id) == len(second.request_id) == 32


def test_the_token_is_masked_in_every_log_line() -> None:
    made = Made(endpoint_id=1, name="shop", token="Ab_-" * 10 + "xyz")
    assert logs.mask(f"Exception on {made.url('https://c.example')} [POST]") == (
        "Exception on https://c.example/inbox/shop/*** [POST]"
    )
    assert logs.mask(f"/inbox/reports/postmark/{made.token}") == "/inbox/reports/postmark/***"
