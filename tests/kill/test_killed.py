"""Workers that are killed at random moments, and what a kill at one exact point leaves behind."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from house import House, house
from peers.sink import Sink
from peers.sink_script import Event, Rule
from sqlalchemy import Engine

from console.demo import drill
from console.demo.children import Child
from console.demo.drill import Plan, Report
from console.demo.place import Place

pytestmark = pytest.mark.kill


def run_drill(engine: Engine, database_url: str, folder: Path, plan: Plan) -> Report:
    """A drill in the test's database, with a mailbox of its own."""
    at = house(engine, database_url, folder, smtp_url="smtp://127.0.0.1:9")
    environ = at.environ | drill.PACE
    place = Place(settings=at.settings(), environ=environ, url=database_url, engine=engine, folder=folder)
    said: list[str] = []
    report = drill.run(place, plan, has_mailbox=True, tell=said.append, meter=lambda *_: None)
    assert report.verdict.held, "\n".join([*said, *report.verdict.broken])
    return report


def test_kills_at_random_moments_neither_repeat_nor_lose_a_message(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """The issue's first promise, smaller: two workers, six SIGKILLs with restarts, a dot that takes 5 ms."""
    report = run_drill(engine, database_url, tmp_path, Plan(recipients=3000, kills=6, freezes=0, seed=2))
    assert report.kills == 6
    verdict = report.verdict
    assert (verdict.duplicates, verdict.lost) == (0, 0)
    assert verdict.states["sent"] + verdict.states["in_doubt"] == 3000
    assert verdict.states["in_doubt"] <= report.in_doubt_limit == 6 * 24
    assert verdict.accepted is not None
    assert verdict.states["sent"] <= verdict.accepted <= 3000


def test_a_kill_before_the_dot_costs_nothing_and_after_it_leaves_a_doubt(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Killed at DATA: back to the queue, no attempt counted. Killed at the dot: in doubt, and never sent again."""
    emails = ["a@example.com", "b@example.com", "c@example.com"]
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="1")
        workers: list[Child] = []
        killed = Rule(stage="DATA", recipient="a@example.com", times=1, call=lambda _: workers[-1].kill(), then="close")
        in_doubt = Rule(
            stage="DOT", recipient="b@example.com", times=1, call=lambda _: workers[-1].kill(), then="close"
        )
        sink.script += [killed, in_doubt]
        with at.children() as children:
            workers.append(at.worker(children))
            campaign_id = at.stage.approved()
            _replace_the_killed(at, children, workers, campaign_id)
        assert at.rows("status", "attempt_no") == {
            "a@example.com": ("sent", 1),
            "b@example.com": ("in_doubt", 1),
            "c@example.com": ("sent", 1),
        }
        assert at.rows("interrupted_count")["a@example.com"] == 1
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
        at.check_books(sink, campaign_id, doubts=1)


def _replace_the_killed(at: House, children, workers: list[Child], campaign_id: int, *, limit_s: float = 50.0) -> None:
    """A supervisor: starts a new worker whenever the last one was killed, until the campaign is sent."""
    deadline = time.monotonic() + limit_s
    while at.stage.row(campaign_id).status != "sent":
        assert time.monotonic() < deadline, at.statuses()
        if workers[-1].is_alive():
            time.sleep(0.05)
            continue
        # Not by at.worker(), which waits until it works: it may be killed before that is seen.
        name = f"worker {len(workers) + 1}"
        workers.append(children.start(name, workers[-1].command, environ=at.environ))


def test_a_message_that_kills_its_worker_each_time_becomes_a_dead_letter(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C74: x1 ends five workers and is given up; the others are sent meanwhile; x6's nonsense answer is in doubt."""
    emails = [f"x{number}@example.com" for number in range(1, 7)]
    workers: list[Child] = []

    def kill(_: Event) -> None:
        workers[-1].kill()

    with Sink(
        Rule(stage="DATA", recipient="x1@example.com", call=kill, then="close"),
        Rule(stage="DOT", recipient="x6@example.com", reply="354 go ahead"),
    ) as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, TICK_SECONDS="0.1")
        with at.children() as children:
            workers.append(at.worker(children))
            campaign_id = at.stage.approved()
            _replace_the_killed(at, children, workers, campaign_id, limit_s=100)
        states = at.rows("status", "provider_reply")
        assert states["x1@example.com"][0] == "dead"
        assert "worker died 5 times" in states["x1@example.com"][1]
        assert states["x6@example.com"][0] == "in_doubt"
        # A bystander that stood between its mark and its dot or answer when x1 ended the worker is honestly in doubt;
        # x6 may be in doubt by that too, never having arrived.
        others = {email: states[email][0] for email in emails[1:5]}
        doubted = [email for email, state in others.items() if state == "in_doubt"]
        assert set(others.values()) <= {"sent", "in_doubt"}
        assert len(sink.tries("DATA", "x1@example.com")) == 5
        arrived = Counter(each.recipient for each in sink.datas)
        assert set(arrived.values()) == {1}
        assert set(emails[1:5]) - set(doubted) <= set(arrived)
        at.check_books(sink, campaign_id, doubts=1 + len(doubted))


@pytest.mark.parametrize(
    ("wait_s", "is_answered"), [(2.0, True), (60.0, False)], ids=["an answer in time", "no answer in time"]
)
def test_sigterm_waits_for_the_answer_that_is_due_and_begins_nothing_new(
    engine: Engine, database_url: str, tmp_path: Path, wait_s: float, is_answered: bool
) -> None:
    """C08: out in under ten seconds with exit code 0; what was handed over is answered, or in doubt; never repeated."""
    emails = ["a@example.com", "b@example.com", "c@example.com"]
    with Sink(Rule(stage="DOT", recipient="a@example.com", times=1, wait_s=wait_s)) as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="1")
        with at.children() as children:
            worker = at.worker(children)
            campaign_id = at.stage.approved()
            sink.wait_for(lambda _: any(event.stage == "DATA" for event in sink.events))
            time.sleep(0.5)
            began = time.monotonic()
            os.kill(worker.pid, signal.SIGTERM)
            assert worker.wait(15) == 0
            assert time.monotonic() - began < 10
            assert [each.recipient for each in sink.datas] == ["a@example.com"]
            expected = "sent" if is_answered else "in_doubt"
            assert at.statuses() == {emails[0]: expected, emails[1]: "queued", emails[2]: "queued"}
            assert set(at.rows("interrupted_count").values()) == {0}
            at.worker(children)
            at.wait_until_sent(campaign_id)
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
        if is_answered:
            at.check_books(sink, campaign_id)
