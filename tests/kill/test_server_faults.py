"""The SMTP server's worst, in one run each, by a real worker process: states as ledger.md and providers.md say."""

import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from house import house
from peers.sink import Sink
from peers.sink_script import Event, Rule
from sqlalchemy import Engine

pytestmark = pytest.mark.kill


def test_a_server_that_refuses_connections_for_a_while_costs_no_attempt(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Refused for some seconds in mid-campaign: rows wait queued, and all go out once when the server is back."""
    emails = [f"p{number:03d}@example.com" for number in range(200)]
    with Sink(Rule(stage="DOT", wait_s=0.02)) as sink:

        def go_away(_: Event) -> None:
            sink.refuse_connections()
            # In a thread of its own: the caller is one of the lines that are cut.
            threading.Thread(target=sink.cut_connections, daemon=True).start()
            threading.Timer(4.0, sink.accept_connections).start()

        sink.script.insert(0, Rule(stage="RCPT", recipient="p080@example.com", times=1, call=go_away, wait_s=1))
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="1")
        with at.children() as children:
            at.worker(children)
            campaign_id = at.stage.approved()
            at.wait_until(lambda: at.stage.sql("SELECT FROM provider_states WHERE breaker = 'open'") != [])
            at.wait_until(lambda: "sending" not in at.statuses().values())
            assert Counter(at.statuses().values())["queued"] > 50
            at.wait_until_sent(campaign_id, timeout_s=40)
        states = Counter(at.statuses().values())
        # The line was cut: a message whose dot it had just taken is in doubt.
        assert states["sent"] + states["in_doubt"] == 200
        assert states["in_doubt"] <= 1
        assert max(Counter(each.recipient for each in sink.datas).values()) == 1
        assert at.stage.sql("SELECT max(attempt_no) FROM sends")[0][0] <= 2
        at.check_books(sink, campaign_id, doubts=states["in_doubt"])


# What the server does to one message, what its row is in the end, after how many attempts, and how many dots arrive.
FAULTS = {
    "takes a second try after 421 at the dot": (
        Rule(stage="DOT", times=1, reply="421 4.3.2 shutting down", then="close"), "sent", 2, 2,
    ),
    "greylists": (Rule(stage="RCPT", times=1, reply="450 4.2.0 greylisted"), "sent", 2, 1),
    "drops before the dot": (Rule(stage="DATA", times=1, then="close"), "sent", 2, 1),
    "drops after the dot, taken": (Rule(stage="DOT", times=1, then="close", accepts=True), "in_doubt", 1, 1),
    "drops after the dot, not taken": (Rule(stage="DOT", times=1, then="close"), "in_doubt", 1, 1),
    "resets after the dot": (Rule(stage="DOT", times=1, then="reset"), "in_doubt", 1, 1),
    "hangs after the dot": (Rule(stage="DOT", times=1, then="ignore", accepts=True), "in_doubt", 1, 1),
    "answers the dot with garbage": (Rule(stage="DOT", times=1, reply=b"\xff\x00 what?\r\n"), "in_doubt", 1, 1),
    "answers the dot with 354": (Rule(stage="DOT", times=1, reply="354 go ahead"), "in_doubt", 1, 1),
    "refuses the content": (Rule(stage="DOT", times=1, reply="554 5.7.1 spam"), "failed", 1, 1),
    "is well": (None, "sent", 1, 1),
}  # fmt: skip


def test_each_fault_of_the_server_ends_in_the_state_that_it_should(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """All faults in one campaign, one message each: a fault of one is no fault of another."""
    emails = {f"f{number:02d}@example.com": fault for number, fault in enumerate(FAULTS)}
    with Sink() as sink:
        for email, fault in emails.items():
            rule = FAULTS[fault][0]
            if rule is not None:
                sink.script.append(_for(rule, email))
        at = house(engine, database_url, tmp_path, emails=list(emails), smtp_url=sink.url, SMTP_DOT_TIMEOUT_SECONDS="2")
        with at.children() as children:
            at.worker(children)
            began = time.monotonic()
            campaign_id = at.stage.approved()
            at.wait_until_sent(campaign_id, timeout_s=40)
        assert time.monotonic() - began >= 2
        found = at.rows("status", "attempt_no")
        dots = Counter(each.recipient for each in sink.datas)
        assert {fault: (*found[email], dots[email]) for email, fault in emails.items()} == {
            fault: (status, attempt_no, dot_count) for fault, (_, status, attempt_no, dot_count) in FAULTS.items()
        }
        at.check_books(sink, campaign_id, doubts=Counter(status for _, status, *_ in FAULTS.values())["in_doubt"])


def _for(rule: Rule, email: str) -> Rule:
    return Rule(
        stage=rule.stage, recipient=email, times=rule.times, reply=rule.reply, then=rule.then, accepts=rule.accepts
    )
