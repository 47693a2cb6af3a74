"""One key within its window makes one message, however many ask at once; every one of them leaves a trigger."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import doorway
import psycopg
import pytest
from doorway import Doorway
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from console.db import make_engine
from console.sends.intake import Receipt, Rendered

CALLERS = 20


@pytest.fixture
def door(engine: Engine) -> Doorway:
    return doorway.doorway(engine)


def at_once(door: Doorway, ask: Callable[[Doorway], Receipt]) -> list[Receipt]:
    """What as many callers get who ask at the same moment, each on a connection of its own."""
    url = door.engine.url.render_as_string(hide_password=False)
    engine = make_engine(url.replace("postgresql+psycopg://", "postgresql://"), pool_size=CALLERS)
    together = threading.Barrier(CALLERS)

    def call(_: int) -> Receipt:
        with engine.connect():  # so that no one is late for having to connect
            pass
        together.wait(30)
        return ask(Doorway(engine, door.account_id))

    with ThreadPoolExecutor(CALLERS) as callers:
        receipts = list(callers.map(call, range(CALLERS)))
    engine.dispose()
    return receipts


def test_twenty_at_once_with_one_key_make_one_message_and_nineteen_duplicates(door: Doorway) -> None:
    receipts = at_once(door, lambda each: each.accept())
    assert Counter(receipt.is_duplicate for receipt in receipts) == {False: 1, True: CALLERS - 1}
    (send,) = door.sends()
    assert {receipt.id for receipt in receipts} == {send.id}
    triggers = door.triggers()
    assert Counter(trigger.decision for trigger in triggers) == {"accepted": 1, "duplicate_suppressed": CALLERS - 1}
    assert {trigger.send_id for trigger in triggers} == {send.id}
    assert len({trigger.correlation_id for trigger in triggers}) == CALLERS


def test_an_expired_key_is_taken_again_by_exactly_one_of_twenty(door: Doorway) -> None:
    door.type(window_s=3600)
    first = door.accept()
    door.sql("UPDATE sends SET key_until = now() - interval '1 second'")
    receipts = at_once(door, lambda each: each.accept())
    assert Counter(receipt.is_duplicate for receipt in receipts) == {False: 1, True: CALLERS - 1}
    assert [(send.id == first.id, send.holds_key) for send in door.sends()] == [(True, False), (False, True)]


def test_a_key_is_taken_for_ever_unless_its_type_says_for_how_long(door: Doorway) -> None:
    door.accept()
    (send,) = door.sends()
    assert (send.holds_key, send.key_until) == (True, None)
    door.type("reminder", window_s=3600)
    door.accept(message_type="reminder", dedupe_key="reminder:1")
    left = door.sql("SELECT extract(epoch FROM key_until - now())::int AS s FROM sends WHERE message_type = 'reminder'")
    assert 3590 <= left[0].s <= 3600


def test_within_its_window_a_key_makes_no_second_message(door: Doorway) -> None:
    door.type(window_s=3600)
    first = door.accept()
    door.sql("UPDATE sends SET key_until = now() + interval '5 seconds'")
    again = door.accept()
    assert (again.id, again.is_duplicate, again.decision) == (first.id, True, "duplicate_suppressed")


def test_a_message_that_was_sent_still_holds_its_key_and_its_state_is_told(door: Doorway) -> None:
    first = door.accept()
    door.sql("UPDATE sends SET status = 'sent'")
    again = door.accept()
    assert (again.id, again.status, again.message_id) == (first.id, "sent", first.message_id)


def test_a_key_of_one_account_is_free_in_another(door: Doorway) -> None:
    other = doorway.doorway(door.engine, "other")
    assert door.accept().is_duplicate is False
    assert other.accept().is_duplicate is False


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"to": "ann@example.com"}, ("to",)),
        ({"params": {"order_id": 1002}}, ("params",)),
        ({"params": {"order_id": "1001"}}, ("params",)),
        ({"message_type": "order_copy"}, ("message_type",)),
        ({"rendered": Rendered(subject="Your order", html="<p>Thanks</p>")}, ("rendered",)),
        ({"to": "ann@example.com", "params": {"order_id": 7}}, ("to", "params")),
    ],
)
def test_a_key_with_other_content_is_refused_naming_what_differs(door: Doorway, changed, differs) -> None:
    door.type("order_copy")
    first = door.accept()
    met = door.conflict(**changed)
    assert (met.first_id, met.differs) == (first.id, differs)
    assert all(word in str(met) for word in differs)
    assert len(door.sends()) == 1
    refused = door.triggers()[-1]
    assert (refused.decision, refused.differs, refused.send_id) == ("refused", list(differs), first.id)


def test_finished_parts_are_compared_word_for_word(door: Doorway) -> None:
    parts = {"subject": "Your order", "html": "<p>Thanks</p>"}
    first = door.accept(rendered=Rendered(**parts))
    assert door.accept(rendered=Rendered(**parts)).id == first.id
    assert door.conflict(rendered=Rendered(**parts, text="Thanks")).differs == ("rendered",)
    assert door.conflict(rendered=Rendered(subject="Your order", html="<p>Thanks!</p>")).differs == ("rendered",)
    door.type(sender="Other <other@example.com>")
    assert door.accept(rendered=Rendered(**parts)).id == first.id


def test_spelling_of_the_address_and_order_of_parameters_make_no_other_content(door: Doorway) -> None:
    params = {"order_id": 1, "note": "x", "more": {"a": 1, "b": [1, 2]}}
    first = door.accept(params=params)
    swapped = {"more": {"b": [1, 2], "a": 1}, "note": "x", "order_id": 1}
    assert door.accept(to=" RITA@Example.COM", params=swapped).id == first.id


def test_a_new_version_of_the_template_or_a_new_sender_makes_no_other_content(door: Doorway) -> None:
    first = door.accept()
    door.template(subject="Order {{ order_id }}, with thanks")
    door.type(sender="Other <other@example.com>")
    assert door.accept().id == first.id
    (send,) = door.sends()
    content = door.sql("SELECT * FROM send_contents WHERE id = :id", id=send.content_id)[0]
    assert (content.subject, content.template_version) == ("Your order {{ order_id }}", 1)


def test_a_type_that_answers_with_the_first_message_notes_what_differed(door: Doorway) -> None:
    door.type(on_conflict="first")
    first = door.accept()
    again = door.accept(params={"order_id": 1002})
    assert (again.id, again.is_duplicate, again.decision) == (first.id, True, "duplicate_suppressed")
    assert again.warnings == ("key_too_broad",)
    assert door.triggers()[-1].differs == ["params"]


def test_a_type_that_observes_sends_again_and_says_what_it_would_have_stopped(door: Doorway) -> None:
    door.type(mode="observe")
    first = door.accept()
    again = door.accept()
    other = door.accept(params={"order_id": 1002})
    assert [each.decision for each in (first, again, other)] == ["accepted", "duplicate_observed", "duplicate_observed"]
    assert [each.is_duplicate for each in (first, again, other)] == [False, False, False]
    assert [(send.id, send.status, send.holds_key) for send in door.sends()] == [
        (first.id, "queued", True),
        (again.id, "queued", False),
        (other.id, "queued", False),
    ]
    assert [trigger.differs for trigger in door.triggers()] == [None, None, ["params"]]
    assert [trigger.send_id for trigger in door.triggers()] == [first.id, again.id, other.id]


def test_observed_repeats_leave_the_key_with_the_first_when_the_type_begins_to_enforce(door: Doorway) -> None:
    door.type(mode="observe")
    first = door.accept()
    door.accept()
    door.type(mode="enforce")
    assert door.accept().id == first.id


def test_what_a_rolled_back_transaction_asked_for_is_nowhere_and_its_key_is_free(
    door: Doorway, database_url: str
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE orders (id int)")
        connection.commit()
        connection.execute("INSERT INTO orders VALUES (1001)")
        connection.execute(
            "SELECT accept_send(%s, jsonb_build_object('email', 'rita@example.com', 'email_lower', 'rita@example.com',"
            " 'message_type', 'order_receipt', 'dedupe_key', 'order_receipt:1001', 'trigger_source', 'sql',"
            " 'params', jsonb_build_object('order_id', 1001)))",
            (door.account_id,),
        )
        connection.rollback()
    assert (door.sends(), door.triggers()) == ([], [])
    assert door.accept().is_duplicate is False


@pytest.mark.parametrize("key", ["campaign:7:12", "campaign:0:0"])
def test_the_keys_of_campaigns_are_refused(door: Doorway, key: str) -> None:
    """Who took one would keep the campaign's message from its subscriber."""
    with pytest.raises(Exception, match="campaign") as refused:
        door.accept(dedupe_key=key)
    assert getattr(refused.value, "field", None) == "dedupe_key"


def raw(door: Doorway, database_url: str, *, isolation: psycopg.IsolationLevel) -> psycopg.Connection:
    """A connection with a transaction open that sees the database as it is now."""
    connection = psycopg.connect(database_url)
    connection.isolation_level = isolation
    connection.execute("SELECT FROM accounts WHERE id = %s", (door.account_id,))
    return connection


def ask_by(connection: psycopg.Connection, door: Doorway, **request: object) -> dict:
    document = {
        "email": "rita@example.com",
        "email_lower": "rita@example.com",
        "message_type": "order_receipt",
        "dedupe_key": "order_receipt:1001",
        "trigger_source": "sql",
        "params": {"order_id": 1001},
    } | request
    row = connection.execute("SELECT accept_send(%s, %s)", (door.account_id, Jsonb(document))).fetchone()
    assert row is not None
    return row[0]


def test_a_caller_whose_snapshot_is_older_than_the_first_message_is_told_to_try_again(
    door: Doorway, database_url: str
) -> None:
    """REPEATABLE READ can't see the row that holds the key; it must not make another one, nor find nothing."""
    with raw(door, database_url, isolation=psycopg.IsolationLevel.REPEATABLE_READ) as connection:
        first = door.accept()
        with pytest.raises(psycopg.errors.SerializationFailure):
            ask_by(connection, door)
        connection.rollback()
        assert ask_by(connection, door)["id"] == first.id


def test_a_second_caller_waits_for_the_firsts_transaction_and_takes_the_key_when_that_is_rolled_back(
    door: Doorway, database_url: str
) -> None:
    with psycopg.connect(database_url) as first, ThreadPoolExecutor(1) as callers:
        ask_by(first, door)
        second = callers.submit(door.accept)
        with pytest.raises(TimeoutError):
            second.result(0.5)
        first.rollback()
        assert second.result(10).decision == "accepted"


def test_equal_finished_parts_of_two_open_transactions_do_not_wait_for_each_other(
    door: Doorway, database_url: str
) -> None:
    parts = {"subject": "We are moving", "html": "<p>To a new address</p>"}
    with psycopg.connect(database_url) as first, psycopg.connect(database_url) as second:
        second.execute("SET statement_timeout = '5s'")
        ask_by(first, door, dedupe_key="moving:1", rendered=parts)
        assert ask_by(second, door, dedupe_key="moving:2", rendered=parts)["decision"] == "accepted"


def test_finished_parts_are_kept_once_and_those_of_a_refused_request_not_at_all(door: Doorway) -> None:
    parts = {"subject": "We are moving", "html": "<p>To a new address</p>"}
    for number in range(3):
        door.accept(dedupe_key=f"moving:{number}", rendered=Rendered(**parts))
    door.conflict(dedupe_key="moving:1", rendered=Rendered(**parts, text="Printed at 12:00:01"))
    kept = door.sql("SELECT subject, text FROM send_contents WHERE is_rendered")
    assert [tuple(each) for each in kept] == [("We are moving", "")]


def test_a_random_key_is_pointed_out_and_one_that_names_its_event_is_not(door: Doorway) -> None:
    random = [str(uuid.uuid4()), uuid.uuid4().hex]
    assert [door.accept(dedupe_key=key).warnings for key in random] == [(), ("key_looks_random",)]
    order = str(uuid.uuid4())
    named = door.accept(dedupe_key=f"order_receipt:{order}", params={"order_id": order})
    again = door.accept(dedupe_key=f"order_receipt:{order}", params={"order_id": order})
    assert (named.warnings, again.warnings) == ((), ())
    assert [trigger.warnings for trigger in door.triggers()] == [None, ["key_looks_random"], None, None]
