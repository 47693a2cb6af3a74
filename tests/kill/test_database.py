"""The database goes away in the middle of a campaign: restarted as by a crash, and stopped for a while."""

import signal
import time
from pathlib import Path

import psutil
import pytest
from house import house
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from console import schema
from console.db import make_engine, transaction
from console.demo import store
from console.demo.post_office import open_post_office
from console.demo.verdict import judge
from console.placement import Place
from console.postgres import Server

pytestmark = pytest.mark.kill

RECIPIENTS = 2000
STOPPED_S = 10.0


def _crash(place: Place) -> None:
    """Stops the server in immediate mode: no goodbye to anybody, no checkpoint."""
    postmaster = psutil.Process(int((place.cluster / "postmaster.pid").read_text().split()[0]))
    postmaster.send_signal(signal.SIGQUIT)
    psutil.wait_procs([postmaster], timeout=20)


def _wait(engine: Engine, is_so, *, timeout_s: float) -> None:
    """Asks until it is so; an answer that the database can't give counts as no."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            if is_so():
                return
        except OperationalError:
            engine.dispose()
        time.sleep(0.05)
    raise TimeoutError(f"not so after {timeout_s} s")


def test_workers_outlast_a_crash_and_a_pause_of_the_database(server_place: Place, tmp_path: Path) -> None:
    """Immediate mode first, then ten seconds without a database; the workers recover by themselves."""
    server = Server(server_place)
    url = server.url("sendonce")
    engine = make_engine(url)
    schema.upgrade(engine)
    emails = [f"p{number:04d}@example.com" for number in range(RECIPIENTS)]
    at = house(engine, url, tmp_path, emails=emails, smtp_url="smtp://127.0.0.1:9")
    with at.children() as children:
        mailbox = open_post_office(children, environ=at.environ, dot_delay_ms=60)
        workers = [at.worker(children, SMTP_URL=mailbox.url) for _ in range(2)]
        campaign_id = at.stage.approved()

        _wait(engine, lambda: mailbox.accepted_count() > RECIPIENTS * 0.2, timeout_s=30)
        _crash(server_place)
        server.start()

        _wait(engine, lambda: mailbox.accepted_count() > RECIPIENTS * 0.5, timeout_s=40)
        server.stop()
        accepted_before = mailbox.accepted_count()
        time.sleep(STOPPED_S)
        # Without a mark no dot: nothing more than what was marked before can have gone out meanwhile.
        assert mailbox.accepted_count() - accepted_before <= 2 * at.settings().connections
        assert all(worker.is_alive() for worker in workers)
        server.start()

        _wait(engine, lambda: at.stage.row(campaign_id).status == "sent", timeout_s=60)
        assert all(worker.is_alive() for worker in workers)
        with transaction(engine) as session:
            rows = store.rows_of_campaign(session, at.stage.account_id, campaign_id)
        counts = at.stage.row(campaign_id).counts
        verdict = judge(rows, expected=RECIPIENTS, counts=counts, tally=mailbox.tally(), in_doubt_limit=0)
        assert verdict.broken == []
        assert verdict.accepted == verdict.states["sent"] == RECIPIENTS
    engine.dispose()
