"""Opt-outs that are written while a campaign is being sent."""

from collections import Counter
from pathlib import Path

import pytest
from house import house
from peers.sink import Sink
from peers.sink_script import Event, Rule
from sqlalchemy import Engine

from console.audience import service as audience
from console.audience.store import suppress
from console.db import transaction
from console.demo.post_office import open_post_office

pytestmark = pytest.mark.kill


def test_opt_outs_during_the_run_stop_those_messages(engine: Engine, database_url: str, tmp_path: Path) -> None:
    """Of 400, forty at the end of the queue opt out, half of them of the list alone; none of them gets a message."""
    emails = [f"p{number:03d}@example.com" for number in range(400)]
    gone = set(emails[-40:])
    at = house(engine, database_url, tmp_path, emails=emails, smtp_url="smtp://127.0.0.1:9", CONNECTIONS="4")
    with at.children() as children:
        mailbox = open_post_office(children, environ=at.environ, dot_delay_ms=40)
        for _ in range(2):
            at.worker(children, SMTP_URL=mailbox.url)
        campaign_id = at.stage.approved()
        at.wait_until(lambda: mailbox.accepted_count() > 100)
        with transaction(engine) as session:
            for number, email in enumerate(sorted(gone)):
                suppress(
                    session, at.stage.account_id, email_lower=email, kind="unsubscribed", reason="left",
                    list_id=at.stage.list_id if number % 2 else None,
                )  # fmt: skip
        assert mailbox.accepted_count() < 350
        at.wait_until_sent(campaign_id, timeout_s=40)
        tally = Counter(recipient for recipient, _ in mailbox.tally().elements())
    assert tally == dict.fromkeys(set(emails) - gone, 1)
    states = at.statuses()
    assert {email for email, status in states.items() if status == "suppressed"} == gone
    assert at.stage.row(campaign_id).counts["suppressed"] == 40


def test_an_opt_out_after_the_claim_and_before_the_dot_stops_the_message(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Written while the server thinks about DATA: the body may go out, the dot does not."""
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=["a@example.com", "b@example.com"], smtp_url=sink.url)

        def leave(_: Event) -> None:
            with transaction(engine) as session:
                audience.suppress(session, at.stage.account_id, email="a@example.com", reason="just now")

        sink.script.append(Rule(stage="DATA", recipient="a@example.com", times=1, call=leave))
        with at.children() as children:
            at.worker(children)
            campaign_id = at.stage.approved()
            at.wait_until_sent(campaign_id)
        assert [each.recipient for each in sink.datas] == ["b@example.com"]
        assert at.statuses() == {"a@example.com": "suppressed", "b@example.com": "sent"}
        assert at.rows("attempt_no")["a@example.com"] == 0
        at.check_books(sink, campaign_id)
