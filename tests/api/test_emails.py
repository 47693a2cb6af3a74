"""Messages by the API: once for each key, by field when refused, found again and cancelled."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import programs
import psycopg
import pytest
import visit
from sqlalchemy import Engine, text
from werkzeug.test import TestResponse

from console.audience.store import suppress
from console.db import transaction
from console.sends import message_types
from console.sends.type_store import TypeRow

TYPE = TypeRow(
    name="receipt", lane="normal", template="receipt", sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern="receipt:{order_id}", in_doubt_policy="hold", attempt_cap=12, age_cap_s=345_600,
)  # fmt: skip
RECEIPT = {"to": "Rita@Example.com", "message_type": "receipt", "params": {"order_id": "1001", "name": "Rita"}}


@dataclass
class Shop:
    """An account with a message type, and a program of it."""

    office: visit.Office
    program: programs.Program

    def rows(self, statement: str) -> list[tuple]:
        with self.office.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement))]

    def hand_in(self, headers: dict[str, str] | None = None, **changes: Any) -> TestResponse:
        return self.program.post("/emails", {**RECEIPT, **changes}, headers=headers)

    def set_type(self, **columns: Any) -> None:
        with transaction(self.office.engine) as session:
            message_types.put_type(session, self.office.account_id, replace(TYPE, **columns))


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def _shop(engine: Engine, slug: str = "acme", app: Any = None) -> Shop:
    office = visit.office(engine, slug=slug, app=app)
    with transaction(engine) as session:
        message_types.save_template(
            session, office.account_id, name="receipt", subject="Order {{ order_id }}", html="<p>Hello {{ name }}</p>"
        )
        message_types.put_type(session, office.account_id, TYPE)
    return Shop(office, programs.program(engine, office.app, office.account_id))


@pytest.fixture
def shop(engine: Engine) -> Shop:
    return _shop(engine)


def test_a_new_message_is_202_and_stands_in_the_ledger(shop: Shop) -> None:
    answer = shop.hand_in(
        correlation_id="c-1", trigger_source="webhook", code_path="shop.paid", entities={"order_id": 1001, "x": 5.0},
        metadata={"cart": "7"}, event="order.paid",
    )  # fmt: skip
    made = answer.get_json()
    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer.headers
    assert answer.headers["Location"] == f"/api/v1/emails/{made['id']}"
    assert made == {
        "id": made["id"], "status": "queued", "duplicate": False, "message_id": made["message_id"],
        "dedupe_key": "receipt:1001", "correlation_id": "c-1",
    }  # fmt: skip
    assert shop.rows("SELECT id, email, status, lane, message_type, metadata->>'cart' FROM sends") == [
        (made["id"], "Rita@example.com", "queued", "normal", "receipt", "7")
    ]
    columns = "source, code_path, event, correlation_id, request_id, decision, entities"
    assert shop.rows(f"SELECT {columns} FROM triggers") == [
        ("webhook", "shop.paid", "order.paid", "c-1", answer.headers["X-Request-ID"], "accepted",
         {"order_id": "1001", "x": "5"})
    ]  # fmt: skip


def test_a_repeat_is_200_with_the_first_ones_id(shop: Shop) -> None:
    first, again = shop.hand_in(), shop.hand_in()
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.get_json()["duplicate"] is True
    for member in ("id", "message_id", "dedupe_key"):
        assert again.get_json()[member] == first.get_json()[member]
    assert again.headers["Location"] == first.headers["Location"]
    assert shop.rows("SELECT count(*) FROM sends") == [(1,)]
    assert shop.rows("SELECT decision FROM triggers ORDER BY id") == [("accepted",), ("duplicate_suppressed",)]


def test_twenty_at_the_same_instant_make_one_row(shop: Shop) -> None:
    together = threading.Barrier(20)

    def hand_in(_number: int) -> tuple[int, int]:
        one = programs.Program(shop.office.app, shop.program.key)
        together.wait()
        answer = one.post("/emails", RECEIPT)
        return answer.status_code, answer.get_json()["id"]

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(hand_in, range(20)))
    assert Counter(status for status, _ in answers) == {202: 1, 200: 19}
    assert len({number for _, number in answers}) == 1
    assert shop.rows("SELECT count(*) FROM sends") == [(1,)]
    assert shop.rows("SELECT decision, count(*) FROM triggers GROUP BY 1 ORDER BY 1") == [
        ("accepted", 1), ("duplicate_suppressed", 19),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"to": "other@example.com"}, ["to"]),
        ({"params": {"order_id": "1001", "name": "Rob"}}, ["params"]),
        ({"to": "other@example.com", "params": {"order_id": "1001", "name": "Rob"}}, ["to", "params"]),
    ],
)
def test_the_same_key_with_other_content_is_409_and_names_what_differs(shop: Shop, change, differs) -> None:
    """C20 d."""
    first = shop.hand_in().get_json()
    answer = shop.hand_in(**change)
    document = answer.get_json()
    assert (answer.status_code, document["type"]) == (409, "urn:sendonce:problem:key-conflict")
    assert (document["id"], document["differs"], document["field"]) == (first["id"], differs, "dedupe_key")
    assert shop.rows("SELECT count(*) FROM sends") == [(1,)]
    assert shop.rows("SELECT decision FROM triggers ORDER BY id") == [("accepted",), ("refused",)]
    assert shop.hand_in(dedupe_key="another").status_code == 202


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("paid-1001", "paid-1001"),
        ('"paid-1001"', "paid-1001"),
        (r'"a \"b\" \\"', 'a "b" \\'),
        ('"', '"'),
        ("a b", "a b"),
    ],
)
def test_the_key_may_come_in_the_header(shop: Shop, header: str, key: str) -> None:
    """C18: the header's key, in quotes as structured fields have it or bare, is the dedupe key."""
    headers = {"Idempotency-Key": header}
    made = shop.hand_in(headers)
    assert (made.status_code, made.get_json()["dedupe_key"]) == (202, key)
    assert shop.hand_in(headers, dedupe_key=key).status_code == 200
    assert shop.hand_in(dedupe_key=key).status_code == 200


def test_two_keys_that_differ_are_refused_by_the_headers_name(shop: Shop) -> None:
    answer = shop.hand_in({"Idempotency-Key": "one"}, dedupe_key="two")
    assert (answer.status_code, answer.get_json()["field"]) == (422, "Idempotency-Key")
    answer = shop.hand_in({"Idempotency-Key": "one"}, dedupe_key="two", message_type="nothing")
    assert (answer.status_code, answer.get_json()["field"]) == (404, "message_type")
    assert shop.rows("SELECT count(*) FROM sends") == [(0,)]


@pytest.mark.parametrize("header", ["bestellung:ä".encode().decode("latin-1"), "x" * 501, ""])
def test_a_key_that_no_header_should_carry_is_refused(shop: Shop, header: str) -> None:
    answer = shop.hand_in({"Idempotency-Key": header})
    assert (answer.status_code, answer.get_json()["field"]) == (400, "Idempotency-Key")


@pytest.mark.parametrize("key", ["order/1001/paid", "bestellung:ä ö 1001€", "k" * 300, "💌"])
def test_keys_are_any_text_and_belong_to_their_account(shop: Shop, key: str) -> None:
    """C18: the same key in another account is another key."""
    other = _shop(shop.office.engine, "other", shop.office.app)
    ids = set()
    for one in (shop, other, shop):
        made = one.hand_in(dedupe_key=key).get_json()
        assert made["dedupe_key"] == key
        ids.add(made["message_id"])
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"to": "nobody"}, 400, "to"),
        ({"to": "rita@localhost"}, 422, "to"),
        ({"to": None}, 400, "to"),
        ({"to": ["a@example.com"]}, 400, "to"),
        ({"message_type": "nothing"}, 404, "message_type"),
        ({"message_type": "campaign"}, 404, "message_type"),
        ({"message_type": ""}, 400, "message_type"),
        ({"params": {"order_id": "1"}}, 422, "params"),
        ({"params": []}, 400, "params"),
        ({"params": {"order_id": "1", "name": "x\x00"}}, 400, "params.name"),
        ({"params": {"order_id": "1", "name": "\ud800"}}, 400, "params.name"),
        ({"params": {"order_id": 10**30, "name": "x"}}, 400, "params.order_id"),
        ({"params": {"order_id": "1", "name": "x" * 150_000}}, 422, "params"),
        ({"params": {"order_id": "1", "name": "x", "\x00": 1}}, 400, "params"),
        ({"params": {"order_id": "1", "name": _nested(31)}}, 400, "params"),
        ({"dedupe_key": ""}, 400, "dedupe_key"),
        ({"dedupe_key": "k" * 501}, 400, "dedupe_key"),
        ({"dedupe_key": "campaign:1:2"}, 422, "dedupe_key"),
        ({"correlation_id": "two words"}, 400, "correlation_id"),
        ({"trigger_source": "cat"}, 400, "trigger_source"),
        ({"send_after": "tomorrow"}, 400, "send_after"),
        ({"send_after": "2027-02-30T00:00:00Z"}, 400, "send_after"),
        ({"send_after": "2027-02-03T00:00:00"}, 400, "send_after"),
        ({"expires_after": "2020-01-01T00:00:00Z"}, 422, "expires_after"),
        ({"entities": {"order": {}}}, 400, "entities.order"),
        ({"entities": {"": "x"}}, 400, "entities"),
        ({"metadata": {"a": 1}}, 400, "metadata.a"),
        ({"metadata": {str(n): "x" for n in range(21)}}, 400, "metadata"),
        ({"lane": "urgent"}, 400, "lane"),
        ({"rendered": {"subject": "x", "html": "y"}}, 400, "rendered"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_field_and_nothing_is_made(shop: Shop, change, status: int, field: str) -> None:
    answer = shop.hand_in(**change)
    document = answer.get_json()
    assert (answer.status_code, document["field"]) == (status, field), document
    assert shop.rows("SELECT count(*) FROM sends") == [(0,)]


def test_parameters_may_nest_as_deep_as_is_said(shop: Shop) -> None:
    assert shop.hand_in(params={"order_id": "1", "name": _nested(30)}).status_code == 202


def test_a_body_over_the_limit_is_413(shop: Shop) -> None:
    answer = shop.hand_in(params={"order_id": "1", "name": "x" * 300_000})
    assert answer.status_code == 413
    assert "256 kB" in answer.get_json()["detail"]


@pytest.mark.parametrize(
    "moment",
    [
        "2027-03-04T05:06:07Z",
        "2027-03-04t05:06:07.123456789+01:30",
        "9999-12-31T23:59:59-23:59",
        "2027-03-04T05:06:07+23:59",
        "2027-06-30T23:59:60Z",
    ],
)
def test_moments_are_taken_as_rfc_3339_writes_them(shop: Shop, moment: str) -> None:
    made = shop.hand_in(send_after=moment)
    assert made.status_code == 202
    shown = shop.program.get(f"/emails/{made.get_json()['id']}").get_json()
    assert shown["due_at"] > "2027"


@pytest.mark.parametrize("moment", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1969-12-31T00:00:00Z"])
def test_a_moment_long_past_means_at_once(shop: Shop, moment: str) -> None:
    assert shop.hand_in(send_after=moment).status_code == 202
    assert shop.rows("SELECT due_at <= now() FROM sends") == [(True,)]


def test_nulls_are_as_good_as_nothing(shop: Shop) -> None:
    given = dict.fromkeys(("dedupe_key", "correlation_id", "send_after", "expires_after"))
    answer = shop.hand_in({"X-Correlation-ID": "from-the-header"}, **given)
    assert (answer.status_code, answer.get_json()["correlation_id"]) == (202, "from-the-header")


def test_who_asked_is_on_record_when_the_caller_does_not_say(shop: Shop) -> None:
    shop.hand_in()
    assert shop.rows("SELECT source, code_path FROM triggers") == [
        ("api", f"api key so_{shop.program.key.split('_')[1]}_")
    ]


def test_a_suppressed_recipient_gets_a_row_that_says_so(shop: Shop) -> None:
    with transaction(shop.office.engine) as session:
        suppress(session, shop.office.account_id, email_lower="rita@example.com", kind="complained", reason="x")
    answer = shop.hand_in()
    assert (answer.status_code, answer.get_json()["status"]) == (202, "suppressed")


def test_a_type_that_observes_lets_the_repeat_pass(shop: Shop) -> None:
    shop.set_type(mode="observe")
    first, again = shop.hand_in(), shop.hand_in()
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.get_json()["id"] != again.get_json()["id"]


def test_a_key_that_looks_random_is_pointed_out(shop: Shop) -> None:
    keys = ["6f2c2a3e-1b1f-4f0e-9f0e-0a1b2c3d4e5f", "7f2c2a3e-1b1f-4f0e-9f0e-0a1b2c3d4e5f"]
    answers = [shop.hand_in(dedupe_key=key).get_json() for key in keys]
    assert "warnings" not in answers[0]
    assert answers[1]["warnings"] == ["key_looks_random"]


def test_a_batch_gives_each_message_its_own_result(shop: Shop) -> None:
    shop.hand_in()
    bodies: list[Any] = [
        RECEIPT,
        {**RECEIPT, "params": {"order_id": "1002", "name": "Rita"}},
        {**RECEIPT, "to": "other@example.com"},
        {**RECEIPT, "to": "nobody"},
        {},
        {**RECEIPT, "message_type": "nothing"},
        {**RECEIPT, "params": {"order_id": "1002", "name": "Rita"}},
        {**RECEIPT, "params": {"order_id": "1003"}},
        {**RECEIPT, "params": {"order_id": "1004", "name": "Rita"}},
    ]
    answer = shop.program.post("/emails/batch", {"emails": bodies})
    results = answer.get_json()["results"]
    assert answer.status_code == 200
    assert [result["status"] for result in results] == [200, 202, 409, 400, 400, 404, 200, 422, 202]
    assert results[6]["email"]["id"] == results[1]["email"]["id"]
    assert results[2]["problem"]["differs"] == ["to"]
    assert results[4]["problem"]["field"] == "to"
    assert results[7]["problem"]["field"] == "params"
    assert shop.rows("SELECT count(*) FROM sends") == [(3,)]


@pytest.mark.parametrize(
    ("emails", "field"), [([], "emails"), ([RECEIPT] * 501, "emails"), ([RECEIPT, 5], "emails[1]"), ("x", "emails")]
)
def test_a_batch_that_is_none_is_refused_as_a_whole(shop: Shop, emails: Any, field: str) -> None:
    answer = shop.program.post("/emails/batch", {"emails": emails})
    assert (answer.status_code, answer.get_json()["field"]) == (400, field)
    assert shop.rows("SELECT count(*) FROM sends") == [(0,)]


def test_a_full_batch_is_taken(shop: Shop) -> None:
    bodies = [{**RECEIPT, "params": {"order_id": str(number), "name": "Rita"}} for number in range(500)]
    results = shop.program.post("/emails/batch", {"emails": bodies}).get_json()["results"]
    assert Counter(result["status"] for result in results) == {202: 500}
    again = shop.program.post("/emails/batch", {"emails": bodies}).get_json()["results"]
    assert [result["email"]["id"] for result in again] == [result["email"]["id"] for result in results]


def test_each_message_of_a_batch_counts_as_a_call(shop: Shop) -> None:
    one = programs.program(shop.office.engine, shop.office.app, shop.office.account_id, calls_per_minute=60)
    bodies = [{**RECEIPT, "params": {"order_id": str(number), "name": "Rita"}} for number in range(30)]
    assert one.post("/emails/batch", {"emails": bodies}).status_code == 200
    refused = one.get("/emails")
    assert refused.status_code == 429
    assert 15 <= int(refused.headers["Retry-After"]) <= 22


def test_a_message_is_shown_with_what_asked_for_it_and_without_its_parameters(shop: Shop) -> None:
    made = shop.hand_in(correlation_id="first", params={"order_id": "1001", "name": "Rita", "code": "secret-9"})
    shop.hand_in(correlation_id="second", params={"order_id": "1001", "name": "Rita", "code": "secret-9"})
    answer = shop.program.get(f"/emails/{made.get_json()['id']}")
    shown = answer.get_json()
    assert (shown["status"], shown["to"], shown["message_type"]) == ("queued", "Rita@example.com", "receipt")
    assert [(trigger["decision"], trigger["correlation_id"]) for trigger in shown["triggers"]] == [
        ("accepted", "first"), ("duplicate_suppressed", "second"),
    ]  # fmt: skip
    assert shown["attempt_list"] == []
    assert "secret-9" not in answer.get_data(as_text=True)


def _ids(answer: TestResponse) -> list[int]:
    return [row["id"] for row in answer.get_json()["items"]]


def test_messages_are_found_by_recipient_state_type_and_correlation_id(shop: Shop) -> None:
    shop.set_type(name="reset", key_pattern="reset:{order_id}")
    first = shop.hand_in(correlation_id="c-1").get_json()["id"]
    second = shop.hand_in(dedupe_key="b", message_type="reset", correlation_id="c-2").get_json()["id"]
    third = shop.hand_in(dedupe_key="c", to="rob@example.com").get_json()["id"]
    shop.hand_in(correlation_id="c-3")
    shop.program.post(f"/emails/{second}/cancel")
    campaign = shop.office.send(campaign_id=shop.office.campaign("sending"), status="sent")
    get = shop.program.get
    assert _ids(get("/emails")) == [campaign, third, second, first]
    assert _ids(get("/emails?recipient=RITA@example.COM")) == [campaign, second, first]
    assert _ids(get("/emails?state=cancelled")) == [second]
    assert _ids(get("/emails?state=queued")) == [third, first]
    assert _ids(get("/emails?message_type=reset")) == [second]
    assert _ids(get("/emails?correlation_id=c-2")) == [second]
    # The id of a repeat leads to the message that it met.
    assert _ids(get("/emails?correlation_id=c-3")) == [first]
    assert _ids(get("/emails?recipient=rita@example.com&state=queued&message_type=receipt")) == [first]
    assert _ids(get("/emails?recipient=nobody@example.com")) == []
    assert _ids(get("/emails?recipient=nobody@localhost")) == []
    assert get("/emails?state=gone").get_json()["field"] == "state"


def test_pages_are_read_on_and_rows_that_come_meanwhile_shift_nothing(shop: Shop) -> None:
    made = [shop.hand_in(dedupe_key=str(number)).get_json()["id"] for number in range(5)]
    first = shop.program.get("/emails?limit=2").get_json()
    shop.hand_in(dedupe_key="new")
    second = shop.program.get(f"/emails?limit=2&after={first['next']}").get_json()
    third = shop.program.get(f"/emails?limit=2&after={second['next']}").get_json()
    assert [row["id"] for page in (first, second, third) for row in page["items"]] == made[::-1]
    assert third["next"] is None


def test_a_search_without_an_index_looks_at_so_many_rows_and_says_where_to_go_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.sends.listing_store.SCAN_ROWS", 3)
    made = [shop.hand_in(dedupe_key=str(number)).get_json()["id"] for number in range(8)]
    shop.program.post(f"/emails/{made[0]}/cancel")
    path, seen, pages = "/emails?state=cancelled", [], 0
    while path:
        page = shop.program.get(path).get_json()
        seen += [row["id"] for row in page["items"]]
        path = f"/emails?state=cancelled&after={page['next']}" if page["next"] else ""
        pages += 1
    assert seen == [made[0]]
    assert pages == 3


def test_a_waiting_message_is_cancelled_once(shop: Shop) -> None:
    number = shop.hand_in().get_json()["id"]
    answer = shop.program.post(f"/emails/{number}/cancel")
    assert (answer.status_code, answer.get_json()["status"]) == (200, "cancelled")
    again = shop.program.post(f"/emails/{number}/cancel")
    assert (again.status_code, again.get_json()["state"], again.get_json()["id"]) == (409, "cancelled", number)
    key_id = shop.program.key.split("_")[1]
    assert shop.rows("SELECT object_id, details->>'api_key_id' FROM audit_entries WHERE action = 'send.cancel'") == [
        (str(number), key_id)
    ]


@pytest.mark.parametrize("state", ["sending", "sent", "failed", "in_doubt", "dead", "suppressed", "expired"])
def test_what_does_not_wait_is_not_cancelled_and_says_what_it_is(shop: Shop, state: str) -> None:
    number = shop.office.send(status=state)
    answer = shop.program.post(f"/emails/{number}/cancel")
    assert (answer.status_code, answer.get_json()["state"]) == (409, state)
    assert shop.rows("SELECT status FROM sends") == [(state,)]


def test_a_campaigns_message_is_cancelled_with_its_campaign_only(shop: Shop) -> None:
    campaign = shop.office.campaign("sending")
    number = shop.office.send(campaign_id=campaign)
    answer = shop.program.post(f"/emails/{number}/cancel")
    assert answer.status_code == 409
    assert f"campaign {campaign}" in answer.get_json()["detail"]
    assert shop.rows("SELECT status FROM sends") == [("queued",)]


def test_of_twenty_cancellations_at_once_one_wins(shop: Shop) -> None:
    number = shop.hand_in().get_json()["id"]
    together = threading.Barrier(20)

    def cancel(_number: int) -> int:
        one = programs.Program(shop.office.app, shop.program.key)
        together.wait()
        return one.post(f"/emails/{number}/cancel").status_code

    with ThreadPoolExecutor(20) as pool:
        assert Counter(pool.map(cancel, range(20))) == {200: 1, 409: 19}


def test_another_accounts_messages_are_not_there(shop: Shop) -> None:
    number = shop.hand_in().get_json()["id"]
    other = _shop(shop.office.engine, "other", shop.office.app)
    assert other.program.get(f"/emails/{number}").status_code == 404
    assert other.program.post(f"/emails/{number}/cancel").status_code == 404
    assert _ids(other.program.get("/emails")) == []
    assert _ids(other.program.get("/emails?recipient=rita@example.com")) == []
    assert shop.rows("SELECT status FROM sends") == [("queued",)]


def test_an_urgent_message_wakes_a_worker_once_it_is_committed(shop: Shop, database_url: str) -> None:
    shop.set_type(lane="urgent")
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN sendonce_work")
        made = shop.hand_in().get_json()
        (woken,) = listener.notifies(timeout=5, stop_after=1)
        assert woken.payload == "urgent"
        assert listener.execute("SELECT status FROM sends WHERE id = %s", (made["id"],)).fetchone() == ("queued",)
        assert shop.hand_in().status_code == 200
        assert list(listener.notifies(timeout=0.2)) == []
