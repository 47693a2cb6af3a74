"""Events are read once, whoever reads them, whatever is in them, whenever somebody is killed."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import post
import pytest
from sqlalchemy import Engine, text

from console.audience.store import suppress
from console.db import make_engine, transaction
from console.inbox import reading
from console.inbox.ticks import forget_bodies, read_events, read_next
from console.scheduler import ticks


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine)


def test_an_event_makes_its_message_with_all_that_finds_it_again(shop: post.Shop) -> None:
    event_id = shop.post()
    assert shop.read() == 1
    [send] = shop.sends()
    assert (send.email, send.message_type, send.status) == ("rita@example.com", "receipt", "queued")
    assert send.merge_values == {"order_id": 1001, "name": "Rita"}
    assert send.dedupe_key == "webhook:shop:evt_1"
    event = shop.row(event_id)
    assert (event.status, event.send_id, event.decision, event.run_count) == ("done", send.id, "accepted", 1)
    assert (event.rule_id, event.rule_version) == (shop.rule_id, 1)
    [trigger] = shop.triggers()
    assert (trigger.source, trigger.code_path, trigger.event) == ("webhook", "inbox:shop/receipt", "order.paid")
    assert trigger.entities == {"order": "1001", "webhook_event": "evt_1"}
    assert (trigger.request_id, trigger.correlation_id) == (event.request_id, event.correlation_id)
    assert send.correlation_id == event.correlation_id
    assert shop.read() == 0


def test_the_same_event_twenty_times_in_parallel_is_one_row_and_one_message(shop: post.Shop) -> None:
    """C53; readers run while the deliveries come."""
    url = shop.engine.url.render_as_string(hide_password=False)
    crowd = make_engine(url, pool_size=20)
    app = post.visit.site(crowd)
    gate = threading.Barrier(22)

    def deliver(_number: int) -> int:
        gate.wait()
        return post.event(app, shop.made, post.ORDER).status_code

    def read(_number: int) -> None:
        gate.wait()
        for _ in range(30):
            read_events(crowd, post.SETTINGS)

    with ThreadPoolExecutor(22) as pool:
        readers = [pool.submit(read, number) for number in range(2)]
        assert list(pool.map(deliver, range(20))) == [200] * 20
        for one in readers:
            one.result()
    shop.read()
    crowd.dispose()
    [event] = post.rows(shop.office, "SELECT * FROM inbox_events")
    assert (event.delivery_count, event.status, event.run_count) == (20, "done", 1)
    assert len(shop.sends()) == len(shop.triggers()) == 1
    assert post.rows(shop.office, "SELECT count(*) FROM inbox_redeliveries") == [(19,)]


def test_two_replicas_read_each_event_once(shop: post.Shop) -> None:
    for number in range(40):
        shop.post(id=f"evt_{number}")
    engines = [make_engine(shop.engine.url.render_as_string(hide_password=False)) for _ in range(2)]
    gate = threading.Barrier(2)

    def tick(engine: Engine) -> int:
        gate.wait()
        return read_events(engine, post.SETTINGS)

    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(tick, engines))
    for engine in engines:
        engine.dispose()
    assert sum(counts) == 40
    assert min(counts) > 0
    assert len(shop.sends()) == len(shop.triggers()) == 40
    assert {row.run_count for row in post.rows(shop.office, "SELECT run_count FROM inbox_events")} == {1}


def test_an_event_that_is_being_read_is_passed_over_by_the_others(shop: post.Shop) -> None:
    first, second = shop.post(), shop.post(id="evt_2")
    with shop.engine.begin() as reader:
        reader.execute(text("SELECT 1 FROM inbox_queue WHERE event_id = :id FOR UPDATE"), {"id": first})
        assert shop.read() == 1
        assert (shop.row(first).status, shop.row(second).status) == ("stored", "done")
    assert shop.read() == 1
    assert shop.row(first).status == "done"


_READER = """
import sys, time
from console.db import make_engine
from console.inbox import reading, ticks
accept = reading.intake.accept
def stop_after(*arguments):
    receipt = accept(*arguments)
    print("accepted", flush=True)
    time.sleep(60)
    return receipt
reading.intake.accept = stop_after
ticks.read_next(make_engine(sys.argv[1]))
"""


def test_a_reader_that_is_killed_leaves_the_event_to_the_next_which_makes_one_message(shop: post.Shop) -> None:
    """Killed between the store and the commit of what was made of it, at the worst place: after accept."""
    event_id = shop.post()
    url = shop.engine.url.render_as_string(hide_password=False).replace("+psycopg", "")
    child = subprocess.Popen([sys.executable, "-c", _READER, url], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "accepted\n"
    assert shop.read() == 0
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    assert shop.row(event_id).status == "stored"
    deadline = time.monotonic() + 10
    while shop.read() == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert shop.row(event_id).status == "done"
    assert len(shop.sends()) == len(shop.triggers()) == 1


def _failed(shop: post.Shop, body: object, words: str) -> None:
    event_id = shop.post(body)
    assert shop.read() == 1
    event = shop.row(event_id)
    assert (event.status, event.send_id) == ("failed", None), event.reason
    assert words in event.reason
    assert shop.sends() == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"id=1&type=order.paid", "not JSON"),
        (b"\xff\x00", "not JSON"),
        (b"[" * 200_000, "too deeply"),
        ([1, 2], "nothing at $"),
        ({}, "nothing at $"),
        (b"null", "nothing at $"),
    ],
)
def test_a_body_that_no_rule_can_read_is_stored_and_fails_where_people_see_it(
    shop: post.Shop, body: object, words: str
) -> None:
    shop.on(shop.draft("any", event_type="*"))
    _failed(shop, body, words)


def _order(**customer: object) -> dict:
    return {
        **post.ORDER,
        "data": {**post.ORDER["data"], "customer": {"email": "r@example.com", "name": "R"} | customer},
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (_order(name="Ri\x00ta"), "NUL"),
        (_order(name="\ud800"), "half of a character"),
        (_order(email=None), "no text with an address"),
        (_order(email=["a@example.com"]), "no text with an address"),
        (_order(email="nobody"), "nobody"),
        (_order(email="a@example.com\r\nBcc: b@example.com"), ""),
        (_order(email="x" * 100_000 + "@example.com"), ""),
        (_order(name=None), "needs name"),
        (_order(name="x" * 200_000), "100,000"),
    ],
)
def test_hostile_values_fail_with_a_reason_and_send_nothing(shop: post.Shop, body: object, words: str) -> None:
    _failed(shop, body, words)


def test_a_value_in_a_well_of_lists_fails_with_a_reason(shop: post.Shop) -> None:
    well: object = 1
    for _ in range(400):
        well = [well]
    _failed(shop, _order(name=well), "50 deep")


def test_a_body_of_a_megabyte_is_read_in_no_time(shop: post.Shop) -> None:
    body = {**post.ORDER, "rest": ["x" * 90] * 10_000}
    shop.post(body)
    before = time.monotonic()
    assert shop.read() == 1
    assert time.monotonic() - before < 2
    assert len(shop.sends()) == 1


def test_a_rule_that_raises_fails_its_event_and_no_other(shop: post.Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, good = shop.post(), shop.post(id="evt_2")
    accept = reading.intake.accept

    def breaks(session, account_id, request):
        if request.entities["webhook_event"] == "evt_1":
            accept(session, account_id, request)
            raise ZeroDivisionError("a fault of ours")
        return accept(session, account_id, request)

    monkeypatch.setattr(reading.intake, "accept", breaks)
    assert shop.read() == 2
    assert shop.row(broken).status == "failed"
    assert "ZeroDivisionError" in shop.row(broken).reason
    assert shop.row(good).status == "done"
    # What it had done before it broke is undone.
    assert [send.dedupe_key for send in shop.sends()] == ["webhook:shop:evt_2"]
    assert shop.read() == 0


def test_an_event_whose_statement_the_database_refuses_fails_alone(shop: post.Shop) -> None:
    with transaction(shop.engine) as session:
        session.execute(text("ALTER TABLE triggers ADD CONSTRAINT broken CHECK (entities->>'order' <> '1001')"))
    broken = shop.post()
    good = shop.post({**_order(), "id": "evt_2", "data": {**_order()["data"], "order": {"id": 1002}}})
    assert shop.read() == 2
    assert (shop.row(broken).status, shop.row(good).status) == ("failed", "done")


def test_somebody_elses_lock_lets_the_event_wait_and_the_next_go_first(shop: post.Shop) -> None:
    """A business transaction holds the same key for long."""
    held, other = shop.post(), shop.post(id="evt_2")
    with transaction(make_engine(shop.engine.url.render_as_string(hide_password=False))) as business:
        reading.intake.accept(
            business,
            shop.office.account_id,
            reading.intake.Request(
                to="rita@example.com", message_type="receipt", params={"order_id": 1001, "name": "Rita"},
                dedupe_key="webhook:shop:evt_1",
            ),
        )  # fmt: skip
        shop.read()
        assert (shop.row(held).status, shop.row(other).status) == ("stored", "done")
    with transaction(shop.engine) as session:
        session.execute(text("UPDATE inbox_queue SET due_at = now()"))
    assert shop.read() == 1
    assert (shop.row(held).status, shop.row(held).decision) == ("done", "duplicate_suppressed")
    assert len(shop.sends()) == 2


def test_an_event_that_no_rule_is_for_says_so_and_is_read_once_there_is_one(shop: post.Shop) -> None:
    event_id = shop.post(type="order.refunded")
    untyped = shop.post({"id": "evt_2"})
    assert shop.read() == 2
    assert shop.row(event_id).status == shop.row(untyped).status == "no_rule"
    assert "order.refunded" in shop.row(event_id).reason
    assert "No type was found" in shop.row(untyped).reason
    shop.on(shop.draft("refund", event_type="order.refunded"))
    with transaction(shop.engine) as session:
        queued = reading.replay(
            session, shop.office.account_id, user_id=shop.office.users["oda"], event_ids=[event_id, untyped, 10**9]
        )
    assert queued == [event_id, untyped]
    assert shop.read() == 2
    assert shop.row(event_id).status == "done"
    assert shop.row(event_id).run_count == 2
    assert shop.row(untyped).status == "no_rule"
    assert len(shop.sends()) == 1


def test_drafts_and_rules_that_are_off_do_nothing(engine: Engine) -> None:
    shop = post.shop(engine, is_on=False)
    event_id = shop.post()
    shop.read()
    assert shop.row(event_id).status == "no_rule"
    assert shop.sends() == []


def test_the_rule_of_the_type_comes_before_the_one_for_all(shop: post.Shop) -> None:
    shop.on(shop.draft("any", event_type="*"))
    mine, others = shop.post(), shop.post(id="evt_2", type="order.shipped")
    shop.read()
    names = dict(
        post.rows(shop.office, "SELECT e.id, r.name FROM inbox_events e JOIN inbox_rules r ON r.id = e.rule_id")
    )
    assert names == {mine: "receipt", others: "any"}


def _replay(shop: post.Shop, event_id: int) -> None:
    with transaction(shop.engine) as session:
        assert reading.replay(session, shop.office.account_id, user_id=None, event_ids=[event_id]) == [event_id]
    assert shop.read() == 1


def test_reading_an_event_again_makes_no_second_message(shop: post.Shop) -> None:
    event_id = shop.post()
    shop.read()
    _replay(shop, event_id)
    event = shop.row(event_id)
    assert (event.status, event.decision, event.run_count) == ("done", "accepted", 2)
    assert "read again" in event.reason
    assert len(shop.sends()) == 1


@pytest.mark.parametrize("settings", [{"mode": "observe"}, {"window_s": 1}, {"key_pattern": "other:{order_id}"}])
def test_nor_does_it_when_the_key_alone_would_let_it(shop: post.Shop, settings: dict) -> None:
    event_id = shop.post()
    shop.read()
    shop.type(**settings)
    with transaction(shop.engine) as session:
        session.execute(text("UPDATE sends SET key_until = now() - interval '1 day'"))
    _replay(shop, event_id)
    assert shop.row(event_id).status == "done"
    assert len(shop.sends()) == 1


def test_an_event_that_failed_sends_once_when_it_is_read_again(shop: post.Shop) -> None:
    with transaction(shop.engine) as session:
        session.execute(text("UPDATE inbox_rules SET recipient_path = '$.nowhere'"))
    event_id = shop.post()
    shop.read()
    assert shop.row(event_id).status == "failed"
    with transaction(shop.engine) as session:
        session.execute(text("UPDATE inbox_rules SET recipient_path = '$.data.customer.email'"))
    for _ in range(2):
        _replay(shop, event_id)
    assert shop.row(event_id).status == "done"
    assert len(shop.sends()) == 1


def test_the_same_key_with_other_content_fails_and_leaves_its_trigger(shop: post.Shop) -> None:
    shop.on(shop.draft("by-order", dedupe_pattern="receipt:{order_id}"))
    first, second = shop.post(), shop.post({**_order(name="Rob"), "id": "evt_2"})
    shop.read()
    assert (shop.row(first).status, shop.row(second).status) == ("done", "failed")
    assert "params" in shop.row(second).reason
    assert [trigger.decision for trigger in shop.triggers()] == ["accepted", "refused"]


def test_the_types_pattern_comes_before_the_events_id_so_that_the_api_meets_it(shop: post.Shop) -> None:
    """The same business event by webhook and by another way is one message."""
    shop.type(key_pattern="receipt:{order_id}")
    first, second = shop.post(), shop.post(id="evt_2")
    shop.read()
    with transaction(shop.engine) as session:
        receipt = reading.intake.accept(
            session,
            shop.office.account_id,
            reading.intake.Request(
                to="rita@example.com", message_type="receipt", params={"order_id": 1001, "name": "Rita"}
            ),
        )
    assert receipt.is_duplicate
    assert [send.dedupe_key for send in shop.sends()] == ["receipt:1001"]
    assert [shop.row(number).decision for number in (first, second)] == ["accepted", "duplicate_suppressed"]


@pytest.mark.parametrize(
    ("pattern", "key"),
    [("receipt:{order_id}:{name}", "receipt:1001:Rita"), ("$.data.order.total", "19.90"),
     ("{endpoint}/{event_type}/{event_id}/{order}", "shop/order.paid/evt_1/1001")],
)  # fmt: skip
def test_a_rule_may_say_what_the_key_is(shop: post.Shop, pattern: str, key: str) -> None:
    shop.type(key_pattern="of-the-type:{order_id}")
    shop.on(shop.draft("keyed", dedupe_pattern=pattern))
    shop.post()
    shop.read()
    assert [send.dedupe_key for send in shop.sends()] == [key]


def test_who_opted_out_gets_nothing_and_the_event_says_so(shop: post.Shop) -> None:
    with transaction(shop.engine) as session:
        suppress(session, shop.office.account_id, email_lower="rita@example.com", kind="manual", reason="asked us to")
    event_id = shop.post()
    shop.read()
    assert (shop.row(event_id).status, shop.row(event_id).decision) == ("done", "suppressed")
    assert [send.status for send in shop.sends()] == ["suppressed"]


def _notices(shop: post.Shop) -> list:
    return post.rows(
        shop.office,
        "SELECT n.kind, a.name, b.name FROM inbox_notices n JOIN inbox_endpoints a ON a.id = n.endpoint_id"
        " JOIN inbox_endpoints b ON b.id = n.other_endpoint_id ORDER BY n.id",
    )


def test_one_event_id_at_two_endpoints_is_noticed_once_for_the_pair(shop: post.Shop) -> None:
    other = post.endpoint(shop.office, name="old-shop")
    shop.post()
    shop.read()
    assert _notices(shop) == []
    shop.post({**post.ORDER, "attempt": 2}, made=other)
    shop.read()
    assert _notices(shop) == [("same_id", "shop", "old-shop")]
    for made in (shop.made, other):
        shop.post(id="evt_2", made=made)
        shop.read()
    assert _notices(shop) == [("same_id", "shop", "old-shop")]


def test_equal_bodies_within_seconds_are_noticed_and_later_ones_are_not(shop: post.Shop) -> None:
    other = post.endpoint(shop.office, name="old-shop", event_id_header="x-id", event_id_path="")
    third = post.endpoint(shop.office, name="late-shop", event_id_header="x-id", event_id_path="")
    shop.post()
    shop.post(made=third)
    with transaction(shop.engine) as session:
        earlier = "UPDATE inbox_events SET received_at = now() - interval '11 seconds' WHERE endpoint_id = :id"
        session.execute(text(earlier), {"id": third.endpoint_id})
    shop.post(made=other)
    shop.read()
    assert _notices(shop) == [("same_body", "shop", "old-shop")]


def test_one_endpoint_that_gets_each_event_under_two_ids_is_noticed_too(shop: post.Shop) -> None:
    made = post.endpoint(shop.office, name="twice")
    for event_id in ("msg_1", "msg_2"):
        post.event(shop.office.app, made, post.ORDER, headers={"webhook-id": event_id})
    shop.read()
    assert _notices(shop) == [("same_body", "twice", "twice")]


def test_what_is_merely_alike_is_not_noticed(shop: post.Shop) -> None:
    other = post.endpoint(shop.office, name="billing")
    # Two systems that count from 1, and bodies that say nothing.
    shop.post({"id": 7, "type": "order.paid"})
    shop.post({"id": 7, "type": "invoice.paid"}, made=other)
    for made in (shop.made, other):
        shop.post(b"{}", made=made)
    # Another account's.
    stranger = post.visit.office(shop.engine, slug="other", app=shop.office.app)
    shop.post(made=post.endpoint(stranger))
    shop.post()
    shop.read()
    assert _notices(shop) == []


def test_two_endpoints_noticed_by_two_replicas_at_once_have_one_notice(shop: post.Shop) -> None:
    other = post.endpoint(shop.office, name="old-shop")
    for number in range(10):
        for made in (shop.made, other):
            shop.post(id=f"evt_{number}", made=made)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: read_events(shop.engine, post.SETTINGS), range(2)))
    shop.read()
    assert _notices(shop) == [("same_id", "shop", "old-shop")]


def test_old_bodies_are_forgotten_and_their_events_stay_known(shop: post.Shop) -> None:
    old, waiting, new = shop.post(), shop.post(id="evt_2"), shop.post(id="evt_3")
    shop.read()
    with transaction(shop.engine) as session:
        session.execute(text("UPDATE inbox_events SET received_at = now() - interval '31 days' WHERE id IN (:a, :b)"),
                        {"a": old, "b": waiting})  # fmt: skip
        reading.replay(session, shop.office.account_id, user_id=None, event_ids=[waiting])
    assert forget_bodies(shop.engine, replace(post.SETTINGS, inbox_body_days=0)) == 0
    assert forget_bodies(shop.engine, post.SETTINGS) == 1
    assert forget_bodies(shop.engine, post.SETTINGS) == 0
    assert (shop.row(old).body, shop.row(old).headers) == (None, {})
    assert shop.row(waiting).body is not None
    assert shop.row(new).body is not None
    with transaction(shop.engine) as session:
        assert reading.replay(session, shop.office.account_id, user_id=None, event_ids=[old]) == []
    answer = post.event(shop.office.app, shop.made, post.ORDER)
    assert answer.json is not None
    assert answer.json["status"] == "duplicate"
    assert shop.read() == 1
    assert len(shop.sends()) == 3


def test_without_a_database_the_tick_fails_and_takes_nothing(shop: post.Shop) -> None:
    with pytest.raises(Exception, match="refused"):
        read_next(make_engine("postgresql://nobody@127.0.0.1:1/none"))


def test_the_scheduler_runs_both() -> None:
    assert {"inbox.read_events", "inbox.forget_bodies"} <= {tick.name for tick in ticks(post.SETTINGS)}
