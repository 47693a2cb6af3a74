"""Several processes that see the same campaign at the same instant."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import stage as stages
from house import house
from peers.sink import Sink
from sqlalchemy import Engine

from console import clock
from console.campaigns.ticks import start_due
from console.db import make_engine

pytestmark = pytest.mark.kill


def test_of_eight_schedulers_at_the_same_instant_one_starts_the_campaign(engine: Engine, database_url: str) -> None:
    at = stages.stage(engine)
    rounds, replicas = 10, 8
    engines = [make_engine(database_url, pool_size=1) for _ in range(replicas)]
    gate = threading.Barrier(replicas)

    def tick(own: Engine) -> int:
        with own.connect():
            pass  # connected beforehand, so that all eight ask at once
        gate.wait()
        return start_due(own, at.settings)

    with ThreadPoolExecutor(replicas) as pool:
        for _ in range(rounds):
            at.approved()
            assert sum(pool.map(tick, engines)) == 1
    for own in engines:
        own.dispose()
    assert at.sql("SELECT count(*), count(DISTINCT campaign_id) FROM triggers")[0] == (rounds, rounds)


def test_two_schedulers_and_two_workers_share_one_campaign_without_a_row_in_common(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Both processes run ticks and send; the campaign falls due while both watch."""
    emails = [f"p{number:03d}@example.com" for number in range(400)]
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, TICK_SECONDS="0.1")
        with at.children() as children:
            pids = [at.worker(children).pid for _ in range(2)]
            campaign_id = at.stage.approved(scheduled_for=clock.now() + timedelta(seconds=1))
            at.wait_until_sent(campaign_id, timeout_s=40)
        assert at.stage.sql("SELECT count(*) FROM triggers")[0][0] == 1
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
        # One attempt a row, and both processes had their share.
        shares = at.stage.sql(
            "SELECT w.pid, count(*), count(DISTINCT t.send_id) FROM attempts t JOIN workers w ON w.id = t.worker_id"
            " GROUP BY w.pid ORDER BY w.pid"
        )
        assert [row[0] for row in shares] == sorted(pids)
        assert sum(row[1] for row in shares) == sum(row[2] for row in shares) == 400
        at.check_books(sink, campaign_id)
