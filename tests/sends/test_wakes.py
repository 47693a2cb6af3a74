"""Who hands over a message wakes the workers of its lane, without making everybody commit one after the other."""

from collections.abc import Iterator

import doorway
import psycopg
import pytest
from doorway import Doorway
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from console.db import transaction
from console.sends import intake


@pytest.fixture
def door(engine: Engine) -> Doorway:
    return doorway.doorway(engine)


@pytest.fixture
def listener(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("LISTEN sendonce_work")
        yield connection


def heard(listener: psycopg.Connection) -> list[str]:
    """The lanes that were woken since the last call."""
    return [notice.payload for notice in listener.notifies(timeout=0.2)]


def ask(connection: psycopg.Connection, door: Doorway, *, key: str, lane: str) -> None:
    document = {
        "email": "rita@example.com", "email_lower": "rita@example.com", "message_type": "order_receipt",
        "dedupe_key": key, "params": {"order_id": 1}, "lane": lane, "trigger_source": "sql",
    }  # fmt: skip
    connection.execute("SELECT accept_send(%s, %s)", (door.account_id, Jsonb(document)))


@pytest.mark.parametrize("lane", ["urgent", "normal", "bulk"])
def test_a_new_message_wakes_its_lane_and_a_repeat_nobody(
    door: Doorway, listener: psycopg.Connection, lane: str
) -> None:
    door.accept(lane=lane)
    assert heard(listener) == [lane]
    door.accept(lane=lane)
    assert heard(listener) == []


def test_what_is_not_due_yet_or_suppressed_wakes_nobody(door: Doorway, listener: psycopg.Connection) -> None:
    door.sql(
        "INSERT INTO suppressions (account_id, email_lower, kind, reason) VALUES (:id, :to, 'manual', 'x')",
        to="ann@example.com",
        id=door.account_id,
    )
    door.accept(to="ann@example.com")
    later = door.sql("SELECT now() + interval '1 hour' AS at")[0].at
    door.accept(dedupe_key="order_receipt:2", send_after=later)
    assert heard(listener) == []


def test_of_transactions_under_way_at_once_one_wakes_the_lane_and_each_urgent_one_does(
    door: Doorway, listener: psycopg.Connection, database_url: str
) -> None:
    with psycopg.connect(database_url) as first, psycopg.connect(database_url) as second:
        for number, connection in enumerate((first, second)):
            ask(connection, door, key=f"normal:{number}", lane="normal")
            ask(connection, door, key=f"bulk:{number}", lane="bulk")
            ask(connection, door, key=f"urgent:{number}", lane="urgent")
        second.commit()
        assert heard(listener) == ["urgent"]
        first.commit()
        assert heard(listener) == ["normal", "bulk", "urgent"]
        ask(second, door, key="normal:3", lane="normal")
        second.commit()
        assert heard(listener) == ["normal"]


def test_a_quiet_caller_wakes_the_urgent_lane_after_its_commit(door: Doorway, listener: psycopg.Connection) -> None:
    with transaction(door.engine) as session:
        receipt = intake.accept(session, door.account_id, door.request(lane="urgent"), is_quiet=True)
    assert (receipt.wakes, heard(listener)) == ("urgent", [])
    with transaction(door.engine) as session:
        intake.wake(session, receipt)
    assert heard(listener) == ["urgent"]
    with transaction(door.engine) as session:
        repeat = intake.accept(session, door.account_id, door.request(lane="urgent"), is_quiet=True)
        intake.wake(session, repeat)
    assert (repeat.wakes, heard(listener)) == (None, [])


def test_a_wake_up_leaves_the_next_transaction_as_safe_as_before(door: Doorway) -> None:
    with door.engine.connect() as connection, connection.begin():
        before = connection.exec_driver_sql("SHOW synchronous_commit").scalar_one()
    with transaction(door.engine) as session:
        receipt = intake.accept(session, door.account_id, door.request(lane="urgent"), is_quiet=True)
    with transaction(door.engine) as session:
        intake.wake(session, receipt)
    assert [row.synchronous_commit for row in door.sql("SHOW synchronous_commit")] == [before] == ["on"]
