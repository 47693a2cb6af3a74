"""Mail of applications under fire: one event by all three ways at once, and everything killed at once, twice."""

import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import post
import psutil
import psycopg
import pytest
from house import House, house
from peers.sink import Sink
from peers.sink_script import Rule
from psycopg.conninfo import make_conninfo
from sqlalchemy import Engine
from stage import SETTINGS, Stage, fill

from console import schema
from console.accounts import keys
from console.db import make_engine, transaction
from console.demo.children import Child, Children, sendonce
from console.placement import Place
from console.postgres import Server
from console.sends import grants

pytestmark = pytest.mark.kill

# How often each way asks; together twenty.
ASKS = {"api": 7, "sql": 7, "webhook": 6}
SEND = (
    "SELECT id FROM sendonce.send('rita@example.com', 'receipt', event => 'order.paid', code_path => 'shop.pay',"
    " params => jsonb_build_object('order_id', {order_id}, 'name', 'Rita'))"
)


@pytest.fixture
def role(server_url: str) -> Iterator[str]:
    """The application's role of the database server."""
    name = f"shop_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"DROP ROLE {name}")


def _opened(shop: post.Shop, database_url: str, folder: Path, sink: Sink) -> House:
    """The shop's account as an installation whose processes are real."""
    office = shop.office
    stage = Stage(shop.engine, office.account_id, office.users["mia"], office.users["abe"], office.list_id, SETTINGS)
    return house(shop.engine, database_url, folder, smtp_url=sink.url, stage=stage)


def test_one_event_asked_for_twenty_times_by_api_sql_and_webhook_is_one_message(
    role: str, engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Twenty requests at the same instant; the worker that has the message is killed at DATA, another one goes on."""
    shop = post.shop(engine)
    shop.type(key_pattern="receipt:{order_id}")
    workers: list[Child] = []
    with Sink(Rule(stage="DATA", times=1, call=lambda _: workers[-1].kill(), then="close")) as sink:
        at = _opened(shop, database_url, tmp_path, sink)
        with at.children() as children:
            serve = sendonce("serve", "--port", "0", "--no-scheduler")
            server = children.start("serve", serve, environ=at.environ, has_output=True)
            url = server.first_line().split()[4]
            workers.append(at.worker(children))
            answers = _ask_all_at_once(shop, role, url=url)
            at.wait_until(lambda: not workers[-1].is_alive())
            workers.append(at.worker(children))
            at.wait_until(lambda: len(shop.triggers()) == 20 and set(at.statuses().values()) == {"sent"})
            # A redelivery, by its event's id, is counted where the event is, and asks nobody again.
            redelivered = httpx.post(f"{url}/inbox/shop/{shop.made.token}", json={**post.ORDER, "id": "evt_0"}).json()
            at.wait_until(lambda: shop.row(redelivered["id"]).delivery_count == 2)
        [send] = shop.sends()
        assert [(each.recipient, each.message_id) for each in sink.accepted] == [(send.email, send.message_id)]
        assert (len(sink.tries("DATA", "rita@example.com")), sink.violations) == (2, [])
    assert (send.attempt_no, send.interrupted_count) == (1, 1)
    assert {answer["id"] for answer in answers if "duplicate" in answer} == {send.id}
    triggers = shop.triggers()
    assert Counter(trigger.source for trigger in triggers) == ASKS
    assert Counter(trigger.decision for trigger in triggers) == {"accepted": 1, "duplicate_suppressed": 19}
    assert {trigger.send_id for trigger in triggers} == {send.id}
    assert len({trigger.correlation_id for trigger in triggers if trigger.source != "sql"}) == 13


def _ask_all_at_once(shop: post.Shop, role: str, *, url: str) -> list[dict[str, Any]]:
    """Gives what the twenty were answered: by the API, by the SQL function, by the endpoint of the inbox."""
    with transaction(shop.engine) as session:
        grants.grant(session, shop.office.account_id, role)
        key = keys.add_key(session, shop.office.account_id, scopes=["send"]).text
    application = make_conninfo(shop.engine.url.set(drivername="postgresql").render_as_string(False), user=role)
    together = threading.Barrier(sum(ASKS.values()))

    def by_api(_number: int) -> dict[str, Any]:
        body = {"to": "rita@example.com", "message_type": "receipt", "params": {"order_id": 1001, "name": "Rita"}}
        with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=30) as client:
            together.wait(30)
            answer = client.post(f"{url}/api/v1/emails", json=body)
        assert answer.status_code in {200, 202}, answer.text
        return answer.json()

    def by_sql(_number: int) -> dict[str, Any]:
        with psycopg.connect(application) as connection:
            together.wait(30)
            found = connection.execute(SEND.format(order_id=1001)).fetchone()
        assert found is not None
        return {"id": found[0], "duplicate": None}

    def by_webhook(number: int) -> dict[str, Any]:
        # Told under an id of its own each time, as by two subscriptions: a redelivery would ask nobody again.
        with httpx.Client(timeout=30) as client:
            together.wait(30)
            answer = client.post(f"{url}/inbox/shop/{shop.made.token}", json={**post.ORDER, "id": f"evt_{number}"})
        assert answer.status_code == 200, answer.text
        return {"event_id": answer.json()["id"]}

    ways: dict[str, Callable[[int], dict[str, Any]]] = {"api": by_api, "sql": by_sql, "webhook": by_webhook}
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ways[way], number) for way, count in ASKS.items() for number in range(count)]
        return [each.result() for each in asked]


APPLICATION = """
import psycopg, sys, time
with psycopg.connect(sys.argv[1]) as connection:
    connection.execute(sys.argv[2].format(order_id=1))
    connection.rollback()
    connection.execute(sys.argv[2].format(order_id=2))
    connection.commit()
    connection.execute(sys.argv[2].format(order_id=3))
    print("committed", flush=True)
    time.sleep(600)
"""


def test_a_send_is_there_when_its_transaction_committed_though_everything_dies_at_once(
    server_place: Place, tmp_path: Path
) -> None:
    """SIGKILL to the application, the console, the worker and every process of PostgreSQL; then all starts again."""
    server = Server(server_place)
    url = server.url("sendonce")
    engine = make_engine(url)
    schema.upgrade(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE shop LOGIN")
    shop = post.shop(engine)
    shop.type(key_pattern="receipt:{order_id}")
    with transaction(engine) as session:
        grants.grant(session, shop.office.account_id, "shop")
    with Sink(is_listening=False) as sink:
        at = _opened(shop, url, tmp_path, sink)
        with at.children() as children:
            serve = children.start("serve", sendonce("serve", "--port", "0"), environ=at.environ, has_output=True)
            assert serve.first_line()
            worker = at.worker(children)
            pay = [sys.executable, "-c", APPLICATION, make_conninfo(url, user="shop"), SEND]
            application = children.start("application", pay, environ=at.environ, has_output=True)
            assert application.first_line() == "committed"
            _kill_all_at_once(server_place, serve, worker, application)
            engine.dispose()
            server.start()
            sink.accept_connections()
            at.worker(children)
            at.wait_until(lambda: set(at.statuses().values()) == {"sent"}, timeout_s=40)
        [send] = shop.sends()
        assert send.merge_values["order_id"] == 2
        assert [each.message_id for each in sink.accepted] == [send.message_id]
        assert [trigger.decision for trigger in shop.triggers()] == ["accepted"]
    engine.dispose()


def test_a_restart_of_everything_in_mid_outage_loses_nothing_and_repeats_nothing(
    server_place: Place, tmp_path: Path
) -> None:
    """The provider goes away in mid-campaign; new mail is taken; all is killed, the database too, and starts again.

    During the outage nothing is tried and no attempt is counted, before the restart and after it.
    """
    server = Server(server_place)
    engine = make_engine(server.url("sendonce"))
    schema.upgrade(engine)
    shop = post.shop(engine)
    shop.type(key_pattern="receipt:{order_id}")
    shop.type("reset", lane="urgent", key_pattern="reset:{order_id}")
    with transaction(engine) as session:
        key = keys.add_key(session, shop.office.account_id, scopes=["send"]).text
    with Sink(Rule(stage="DOT", wait_s=0.02)) as sink:
        at = _opened(shop, server.url("sendonce"), tmp_path, sink)
        fill(at.stage, 118)
        sink.script.insert(0, Rule(stage="DATA", skip=40, times=1, call=lambda _: _go_away(sink), then="close"))
        with at.children() as children:
            url, started = _start_all(at, children)
            campaign_id = at.stage.approved()
            at.wait_until(lambda: len(shop.sends()) == 120 and _is_held(at), timeout_s=60)
            for number in range(6):
                _ask_by_api(url, key, message_type=("reset", "receipt")[number % 2], order_id=number)
            _kill_all_at_once(server_place, *started)
            engine.dispose()
            server.start()
            before = at.rows(*WHERE_IT_STANDS)
            failures_before = _failure_count(at)
            _start_all(at, children)
            # All is up again and has tried the provider, by its own connection and by no message.
            at.wait_until(lambda: _failure_count(at) > failures_before and _is_held(at), timeout_s=60)
            assert at.rows(*WHERE_IT_STANDS) == before
            sink.accept_connections()
            at.wait_until(lambda: not {"queued", "sending"} & set(at.statuses().values()), timeout_s=90)
            at.wait_until_sent(campaign_id)
        _check_the_end(shop, sink, before)
    engine.dispose()


# A claim comes and goes while a process has yet to find out that the provider is away; it counts nothing.
WHERE_IT_STANDS = ("id", "message_id", "attempt_no", "replace(status, 'sending', 'queued')")


def _check_the_end(shop: post.Shop, sink: Sink, before: dict[str, tuple[Any, ...]]) -> None:
    """Everyone is there once; who waited has been sent by one attempt more; who was in doubt is so still."""
    accepted = Counter((each.recipient, each.message_id) for each in sink.accepted)
    assert Counter(each.recipient for each in sink.datas).most_common(1)[0][1] == 1
    assert sink.violations == []
    ended = {row.email: row for row in shop.sends()}
    assert len(before) == len(ended) == 126
    waited = [email for email, (*_, status) in before.items() if status == "queued"]
    assert len(waited) >= 60
    assert {f"a{number}@example.com" for number in range(6)} <= set(waited)
    for email, (send_id, message_id, attempt_no, status) in before.items():
        row, once = ended[email], accepted[email, message_id]
        assert (row.id, row.message_id) == (send_id, message_id)
        if status == "queued":
            assert (row.status, row.attempt_no, once) == ("sent", attempt_no + 1, 1)
        else:
            assert (row.status, row.attempt_no) == (status, attempt_no)
            assert once == 1 if status == "sent" else status == "in_doubt"


def _go_away(sink: Sink) -> None:
    sink.refuse_connections()
    # In a thread of its own: the caller is one of the lines that are cut.
    threading.Thread(target=sink.cut_connections, daemon=True).start()


def _start_all(at: House, children: Children) -> tuple[str, list[Child]]:
    """Starts `serve`, which sends too, and a worker beside it; gives the console's address and both."""
    name = f"serve {len(children.started) + 1}"
    serve = children.start(name, sendonce("serve", "--port", "0"), environ=at.environ, has_output=True)
    url = serve.first_line(within_s=60).split()[4]
    return url, [serve, at.worker(children)]


def _ask_by_api(url: str, key: str, *, message_type: str, order_id: int) -> None:
    body = {
        "to": f"a{order_id}@example.com",
        "message_type": message_type,
        "params": {"order_id": order_id, "name": "Ann"},
    }
    answer = httpx.post(f"{url}/api/v1/emails", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=30)
    assert answer.status_code == 202, answer.text


def _failure_count(at: House) -> int:
    """How often the provider was tried in vain since it was last there; 0: it is there."""
    found = at.stage.sql("SELECT failure_count FROM provider_states WHERE breaker = 'open'")
    return found[0][0] if found else 0


def _is_held(at: House) -> bool:
    """Whether the provider is known to be away, and all that waits for it is back in the queue."""
    return _failure_count(at) > 0 and "sending" not in at.statuses().values()


def _kill_all_at_once(place: Place, *children: Child) -> None:
    postmaster = psutil.Process(int((place.cluster / "postmaster.pid").read_text().split()[0]))
    doomed = [*(psutil.Process(child.pid) for child in children), postmaster, *postmaster.children()]
    for process in doomed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    for child in children:
        child.kill()
    psutil.wait_procs(doomed, timeout=20)
