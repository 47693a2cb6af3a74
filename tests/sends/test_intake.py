"""The door: one key makes one message, whoever asks, however often, and each request leaves its trigger."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import make
import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from console import clock
from console.audience.store import suppress
from console.db import transaction
from console.errors import InvalidInput
from console.sends import message_types, type_store
from console.sends.intake import KeyConflict, Receipt, Rendered, Request, accept, check
from console.sends.type_store import TypeRow

RECEIPT = Request(to="Rita@Example.com", message_type="receipt", params={"order_id": "1001", "name": "Rita"})
TYPE = TypeRow(
    name="receipt", lane="normal", template="receipt", sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern="receipt:{order_id}", in_doubt_policy="hold", attempt_cap=12, age_cap_s=345_600,
)  # fmt: skip


@pytest.fixture
def account_id(engine: Engine) -> int:
    with transaction(engine) as session:
        account_id = make.account(session)
        message_types.save_template(
            session, account_id, name="receipt", subject="Order {{ order_id }}", html="<p>Hello {{ name }}</p>"
        )
        message_types.put_type(session, account_id, TYPE)
    return account_id


def _accept(engine: Engine, account_id: int, request: Request) -> Receipt:
    with transaction(engine) as session:
        return accept(session, account_id, request)


def _set(engine: Engine, account_id: int, **columns: object) -> None:
    with transaction(engine) as session:
        message_types.put_type(session, account_id, replace(TYPE, **columns))


def _rows(engine: Engine, statement: str) -> list[tuple]:
    with transaction(engine) as session:
        return [tuple(row) for row in session.execute(text(statement))]


def _decisions(engine: Engine) -> Counter:
    return Counter(row[0] for row in _rows(engine, "SELECT decision FROM triggers"))


def test_a_request_becomes_a_queued_row_with_all_that_a_retry_needs(engine: Engine, account_id: int) -> None:
    receipt = _accept(
        engine, account_id, replace(RECEIPT, request_id="req-1", event="order.paid", correlation_id="c-1")
    )
    assert (receipt.status, receipt.decision, receipt.is_duplicate) == ("queued", "accepted", False)
    assert receipt.dedupe_key == "receipt:1001"
    assert receipt.message_id.endswith("@example.com>")
    assert _rows(engine, "SELECT email, email_lower, lane, message_type, merge_values->>'name' FROM sends") == [
        ("Rita@example.com", "rita@example.com", "normal", "receipt", "Rita")
    ]
    assert _rows(
        engine,
        "SELECT source, send_id, decision, request_id, event, correlation_id, template, dedupe_key FROM triggers",
    ) == [("api", receipt.id, "accepted", "req-1", "order.paid", "c-1", "receipt", "receipt:1001")]


def test_twenty_at_the_same_instant_make_one_message_and_nineteen_recorded_repeats(
    engine: Engine, account_id: int
) -> None:
    together = threading.Barrier(20)

    def ask() -> Receipt:
        with transaction(engine) as session:
            session.execute(text("SELECT 1"))
            together.wait(20)
            return accept(session, account_id, RECEIPT)

    engine.pool._max_overflow = 30  # type: ignore[attr-defined]  # twenty real connections
    with ThreadPoolExecutor(20) as pool:
        receipts = [each.result() for each in [pool.submit(ask) for _ in range(20)]]
    assert len({receipt.id for receipt in receipts}) == 1
    assert sum(not receipt.is_duplicate for receipt in receipts) == 1
    assert _decisions(engine) == {"accepted": 1, "duplicate_suppressed": 19}


def test_an_expired_key_is_used_again_by_exactly_one_of_twenty(engine: Engine, account_id: int) -> None:
    _set(engine, account_id, window_s=60)
    first = _accept(engine, account_id, RECEIPT)
    assert _accept(engine, account_id, RECEIPT).is_duplicate
    _rows(engine, "UPDATE sends SET key_until = now() - interval '1 second' RETURNING id")
    together = threading.Barrier(20)

    def ask() -> Receipt:
        with transaction(engine) as session:
            session.execute(text("SELECT 1"))
            together.wait(20)
            return accept(session, account_id, RECEIPT)

    engine.pool._max_overflow = 30  # type: ignore[attr-defined]  # twenty real connections
    with ThreadPoolExecutor(20) as pool:
        receipts = [each.result() for each in [pool.submit(ask) for _ in range(20)]]
    assert first.id not in {receipt.id for receipt in receipts}
    assert len({receipt.id for receipt in receipts}) == 1
    assert sum(not receipt.is_duplicate for receipt in receipts) == 1
    assert _rows(engine, "SELECT count(*), count(*) FILTER (WHERE holds_key) FROM sends") == [(2, 1)]


def test_a_transaction_that_is_rolled_back_leaves_nothing(engine: Engine, account_id: int) -> None:
    with transaction(engine) as session:
        accept(session, account_id, RECEIPT)
        session.rollback()
    assert _rows(engine, "SELECT id FROM sends UNION ALL SELECT id FROM triggers") == []


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"to": "other@example.com"}, ("to",)),
        ({"params": {"order_id": "1001", "name": "Otto"}}, ("params",)),
        ({"rendered": Rendered(subject="x", html="y")}, ("rendered",)),
    ],
)
def test_a_taken_key_with_other_content_is_refused_by_name_and_on_record(
    engine: Engine, account_id: int, changed: dict, differs: tuple[str, ...]
) -> None:
    first = _accept(engine, account_id, RECEIPT)
    with transaction(engine) as session, pytest.raises(KeyConflict) as refused:
        accept(session, account_id, replace(RECEIPT, **changed))
    assert (refused.value.first_id, refused.value.differs) == (first.id, differs)
    assert _decisions(engine) == {"accepted": 1, "refused": 1}
    assert _rows(engine, "SELECT count(*) FROM sends") == [(1,)]


def test_a_type_may_answer_other_content_with_the_first_message(engine: Engine, account_id: int) -> None:
    _set(engine, account_id, on_conflict="first")
    first = _accept(engine, account_id, RECEIPT)
    again = _accept(engine, account_id, replace(RECEIPT, params={"order_id": "1001", "name": "Otto"}))
    assert (again.id, again.is_duplicate, again.warnings) == (first.id, True, ("key_too_broad",))


def test_a_new_version_of_the_template_is_no_other_content(engine: Engine, account_id: int) -> None:
    first = _accept(engine, account_id, RECEIPT)
    with transaction(engine) as session:
        message_types.save_template(session, account_id, name="receipt", subject="New {{ order_id }}", html="<p>x</p>")
    assert _accept(engine, account_id, RECEIPT).id == first.id
    later = _accept(engine, account_id, replace(RECEIPT, params={"order_id": "1002", "name": "Rita"}))
    contents = dict(_rows(engine, "SELECT s.id, c.subject FROM sends s JOIN send_contents c ON c.id = s.content_id"))
    assert contents == {first.id: "Order {{ order_id }}", later.id: "New {{ order_id }}"}


def test_an_observed_repeat_goes_out_and_says_that_it_is_one(engine: Engine, account_id: int) -> None:
    _set(engine, account_id, mode="observe")
    receipts = [_accept(engine, account_id, RECEIPT) for _ in range(3)]
    assert len({receipt.id for receipt in receipts}) == 3
    assert [receipt.status for receipt in receipts] == ["queued"] * 3
    assert _decisions(engine) == {"accepted": 1, "duplicate_observed": 2}
    _set(engine, account_id, mode="enforce")
    assert _accept(engine, account_id, RECEIPT).id == receipts[0].id


def test_a_suppressed_address_gets_a_row_that_says_why(engine: Engine, account_id: int) -> None:
    with transaction(engine) as session:
        suppress(session, account_id, email_lower="rita@example.com", kind="bounced", reason="550 unknown")
    receipt = _accept(engine, account_id, RECEIPT)
    assert (receipt.status, receipt.decision) == ("suppressed", "suppressed")
    assert _rows(engine, "SELECT provider_reply FROM sends") == [("suppressed: bounced: 550 unknown",)]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"to": "nobody"}, "to"),
        ({"message_type": "nothing"}, "message_type"),
        ({"message_type": "campaign"}, "message_type"),
        ({"params": {"order_id": "1001"}}, "params"),
        ({"params": {"name": "Rita"}}, "params"),
        ({"params": {"order_id": "1", "name": " "}}, "params"),
        ({"params": {"order_id": "1", "name": "a\x00b"}}, "params"),
        ({"params": {"order_id": "1", "name": "\ud800"}}, "params"),
        ({"params": {"order_id": "1", "name": float("nan")}}, "params"),
        ({"params": {"order_id": "1", "name": "x" * 200_000}}, "params"),
        ({"dedupe_key": "campaign:1:2"}, "dedupe_key"),
        ({"dedupe_key": "x" * 501}, "dedupe_key"),
        ({"lane": "fast"}, "lane"),
        ({"template": "other"}, "template"),
        ({"trigger_source": "magic"}, "trigger_source"),
        ({"expires_after": clock.now() - timedelta(seconds=1)}, "expires_after"),
        ({"send_after": clock.now().replace(tzinfo=None)}, "send_after"),
        ({"rendered": Rendered(subject="a\nb", html="x")}, "rendered.subject"),
        ({"rendered": Rendered(subject="a", html=" ")}, "rendered.html"),
    ],
)
def test_bad_input_names_its_field_and_leaves_nothing(
    engine: Engine, account_id: int, changed: dict, field: str
) -> None:
    with transaction(engine) as session:
        with pytest.raises(InvalidInput) as refused:
            accept(session, account_id, replace(RECEIPT, **changed))
        assert refused.value.field == field
    assert _rows(engine, "SELECT id FROM sends UNION ALL SELECT id FROM triggers") == []


def test_a_type_without_a_pattern_asks_for_a_key(engine: Engine, account_id: int) -> None:
    _set(engine, account_id, key_pattern=None)
    with pytest.raises(InvalidInput) as refused:
        _accept(engine, account_id, RECEIPT)
    assert refused.value.field == "dedupe_key"


def test_a_key_that_is_new_each_time_for_the_same_thing_is_pointed_out(engine: Engine, account_id: int) -> None:
    keys = ["0b1f7d5e-4b0c-4f53-8f0b-6f2f8a1b9c01", "0b1f7d5e-4b0c-4f53-8f0b-6f2f8a1b9c02"]
    first, second = (_accept(engine, account_id, replace(RECEIPT, dedupe_key=key)) for key in keys)
    assert first.warnings == ()
    assert second.warnings == ("key_looks_random",)


def test_the_pattern_takes_from_parameters_entities_and_the_request(engine: Engine, account_id: int) -> None:
    _set(engine, account_id, key_pattern="{message_type}/{order_id}/{user}/{recipient}/{event}")
    receipt = _accept(engine, account_id, replace(RECEIPT, entities={"user": "7"}, event="paid"))
    assert receipt.dedupe_key == "receipt/1001/7/rita@example.com/paid"


def test_a_check_says_what_would_happen_and_writes_nothing(engine: Engine, account_id: int) -> None:
    with transaction(engine) as session:
        assert check(session, account_id, RECEIPT).decision == "accepted"
    assert _rows(engine, "SELECT id FROM sends UNION ALL SELECT id FROM triggers") == []


def test_accounts_do_not_share_keys_or_types(engine: Engine, account_id: int) -> None:
    _accept(engine, account_id, RECEIPT)
    with transaction(engine) as session:
        other_id = make.account(session, "other")
        with pytest.raises(InvalidInput):
            accept(session, other_id, RECEIPT)
    assert len(_rows(engine, "SELECT id FROM sends")) == 1


def test_new_work_wakes_the_workers_by_its_lane(engine: Engine, account_id: int, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN sendonce_work")
        _accept(engine, account_id, replace(RECEIPT, lane="urgent"))
        woken = next(listener.notifies(timeout=5, stop_after=1))
    assert woken.payload == "urgent"


def test_a_type_can_be_read_back(engine: Engine, account_id: int) -> None:
    with transaction(engine) as session:
        assert type_store.show(session, account_id, "receipt") == TYPE


def test_the_decision_is_no_function_for_everybody(engine: Engine, account_id: int) -> None:
    with engine.connect() as connection:
        connection.execute(text("SET LOCAL ROLE pg_monitor"))
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(text("SELECT accept_send(1, '{}')"))
