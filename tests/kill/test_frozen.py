"""Workers that stand still until others have taken over, and then wake up."""

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from house import House, house
from kill.test_killed import run_drill
from peers.sink import Sink
from peers.sink_script import Event, Rule
from sqlalchemy import Engine

from console.db import transaction
from console.demo import store
from console.demo.children import Child
from console.demo.drill import Plan

pytestmark = pytest.mark.kill


def test_workers_that_wake_up_after_they_were_replaced_send_nothing_twice(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Frozen past the deadline, declared dead, taken over, thawed: nothing twice, and late words settle doubts."""
    report = run_drill(
        engine, database_url, tmp_path, Plan(recipients=2500, kills=0, freezes=2, seed=5, dot_delay_ms=40)
    )
    assert report.freezes == 2
    verdict = report.verdict
    assert (verdict.duplicates, verdict.lost, verdict.states["in_doubt"]) == (0, 0, 0)
    assert verdict.states["sent"] == verdict.accepted == 2500


def _is_declared_dead(at: House, worker: Child) -> bool:
    with transaction(at.engine) as session:
        states = store.identities_of(session, host=os.uname().nodename, pid=worker.pid)
    return set(states.values()) == {"dead"}


@pytest.mark.parametrize("stage", ["DATA", "DOT"])
def test_a_worker_frozen_before_or_after_the_dot_is_fenced_when_it_wakes(
    engine: Engine, database_url: str, tmp_path: Path, stage: str
) -> None:
    """Frozen before the dot another one sends the message, and its own mark comes back empty; frozen after it nobody
    does, and its late answer settles the doubt."""
    emails = ["a@example.com"]
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url)
        with at.children() as children:
            frozen = at.worker(children)

            def freeze(_: Event) -> None:
                frozen.freeze()
                at.worker(children)
                at.wait_until(lambda: _is_declared_dead(at, frozen))
                expected = "sent" if stage == "DATA" else "in_doubt"
                at.wait_until(lambda: at.statuses() == {"a@example.com": expected})
                frozen.thaw()

            sink.script.append(Rule(stage=stage, times=1, call=freeze))  # type: ignore[arg-type]
            campaign_id = at.stage.approved()
            at.wait_until_sent(campaign_id, timeout_s=40)
            # Awake again: registered anew, and its own late word spoken.
            at.wait_until(lambda: not _is_declared_dead(at, frozen))
            at.wait_until(lambda: at.statuses() == {"a@example.com": "sent"})
            # Both end by themselves: what the woken one still wanted to do is done by then.
        assert Counter(each.recipient for each in sink.datas) == {"a@example.com": 1}
        at.check_books(sink, campaign_id)


def test_a_worker_that_is_told_to_end_while_it_is_frozen_ends_when_it_wakes(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    at = house(engine, database_url, tmp_path, smtp_url="smtp://127.0.0.1:9")
    with at.children() as children:
        worker = at.worker(children)
        worker.freeze()
        worker.running.terminate()
        time.sleep(0.2)
        worker.thaw()
        assert worker.running.wait(10) == 0
