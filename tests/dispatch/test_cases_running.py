"""Public cases about a campaign under way: pace, trouble with the server, lost sessions, opt-outs. See cases.md."""

import re
import threading
from collections import Counter
from datetime import timedelta
from email import message_from_bytes, policy
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from house import House, house
from peers.sink import Sink
from peers.sink_script import Rule
from sqlalchemy import Engine, text
from visit import Browser, site

from console import clock
from console.audience import service as audience
from console.audience.store import suppress
from console.audience.unsubscribe import read_token
from console.db import transaction


def _addresses(*names: str) -> list[str]:
    return [f"{name}@example.com" for name in names]


def _most_within(at_s: list[float], window_s: float) -> int:
    return max(sum(begin <= moment < begin + window_s for moment in at_s) for begin in at_s)


def test_a_restart_keeps_the_pace_and_loses_nobody(engine: Engine, database_url: str, tmp_path: Path) -> None:
    """C02, a second for a minute: 5 a second, restarted and set to 2 a second after five; nobody is left out.

    Windows are a tenth shorter than the pace's: messages reach the server some milliseconds early or late.
    """
    emails = [f"w{number:02d}@example.com" for number in range(1, 13)]
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url)
        campaign_id = at.stage.approved()
        with at.sending(MAX_RATE="5/s"):
            sink.wait_for(lambda _: len(sink.accepted) == 5)
        before = len(sink.datas)
        assert 5 <= before < 12
        row = at.stage.row(campaign_id)
        assert (row.status, row.counts["sent"], row.counts["queued"]) == ("sending", before, 12 - before)
        with at.sending(MAX_RATE="2/s"):
            at.wait_until_sent(campaign_id)
            assert len(sink.accepted) == 12
        at_s = [each.at for each in sink.datas]
        assert _most_within(at_s, 0.9) <= 5
        assert _most_within(at_s[before:], 0.9) <= 2
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
        at.check_books(sink, campaign_id)


def test_a_relay_that_cuts_the_line_part_way_is_met_again_where_it_was_left(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C03: 421 after four, then no connection for a while; the four are not mailed again, the rest is, by itself."""
    with Sink() as sink:

        def go_away(_: object) -> None:
            sink.refuse_connections()
            threading.Timer(1.5, sink.accept_connections).start()

        sink.script.append(
            Rule(stage="MAIL", skip=4, times=1, call=go_away, reply="421 4.7.0 Too many messages", then="close")
        )
        emails = _addresses(*"abcdefghi")
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="1")
        campaign_id = at.stage.approved()
        with at.sending():
            at.wait_until_sent(campaign_id, timeout_s=40)
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
        assert at.stage.row(campaign_id).counts["sent"] == 9
        at.check_books(sink, campaign_id)


def _page_of(at: House, campaign_id: int) -> str:
    browser = Browser(site(at.engine))
    browser.sign_in()
    return browser.get(f"/campaigns/{campaign_id}").get_data(as_text=True)


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "waited for"])
def test_a_server_that_is_down_is_shown_and_stops_nobody_from_cancelling(
    engine: Engine, database_url: str, tmp_path: Path, is_cancelled: bool
) -> None:
    """C07: the page says what is wrong; cancelling works at once; else all go out once when the server is back."""
    emails = _addresses("a", "b", "c")
    with Sink(is_listening=False) as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url)
        campaign_id = at.stage.approved()
        with at.sending():
            at.wait_until(lambda: at.stage.sql("SELECT FROM provider_states WHERE breaker = 'open'") != [])
            at.wait_until(lambda: set(at.statuses().values()) == {"queued"})
            page = _page_of(at, campaign_id)
            assert "refused" in page.lower()
            assert re.search(r"next try|tries again|again at|try again", page, re.IGNORECASE)
            if is_cancelled:
                at.stage.do("cancel", campaign_id)
                assert set(at.statuses().values()) == {"cancelled"}
            sink.accept_connections()
            if not is_cancelled:
                at.wait_until_sent(campaign_id, timeout_s=40)
            else:
                at.wait_until(lambda: at.stage.sql("SELECT FROM provider_states WHERE breaker = 'closed'") != [])
        assert sorted(each.recipient for each in sink.accepted) == ([] if is_cancelled else emails)
        assert set(at.rows("attempt_no").values()) == {0 if is_cancelled else 1}
        at.check_books(sink, campaign_id)


def _cut_sessions(at: House) -> None:
    """Ends every database session of dispatch, as a pooler or a network does."""
    at.stage.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'sendonce dispatch%'"
    )


def test_a_worker_that_loses_its_database_session_repeats_nothing(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C14: there is no leader to lose; two workers lose all their sessions while an answer is under way."""
    emails = _addresses(*"abcdef")
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="2")
        sink.script.append(
            Rule(stage="DOT", recipient="b@example.com", times=1, call=lambda _: _cut_sessions(at), wait_s=1.0)
        )
        campaign_id = at.stage.approved()
        with at.sending(), at.sending():
            at.wait_until_sent(campaign_id)
        datas = Counter(each.recipient for each in sink.datas)
        assert datas == dict.fromkeys(emails, 1)
        assert set(at.statuses().values()) == {"sent"}
        at.check_books(sink, campaign_id)


def test_a_session_cut_right_after_the_250_sends_nobody_twice(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C18: each message is on record by itself; neither a dropped line nor a cut session undoes another's."""
    emails = _addresses("n1", "n2", "n3")
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="1")
        sink.script += [
            Rule(stage="DOT", recipient="n1@example.com", times=1, call=lambda _: _cut_sessions(at)),
            Rule(stage="MAIL", skip=1, times=1, then="close"),
        ]
        campaign_id = at.stage.approved()
        with at.sending():
            at.wait_until_sent(campaign_id)
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
        at.check_books(sink, campaign_id)


def test_a_worker_holds_no_more_than_it_was_told_to(engine: Engine, database_url: str, tmp_path: Path) -> None:
    """C15: claims of one, three connections, statistics that know of no row; few rows are ever under way.

    For each connection a worker holds at most one message on it, one behind that, one that waits, and one whose outcome
    is not on record yet.
    """
    emails = [f"m{number:03d}@example.com" for number in range(300)]
    connections = 3
    with Sink(Rule(stage="DOT", wait_s=0.02)) as sink:
        at = house(
            engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, BATCH_SIZE="1",
            CONNECTIONS=str(connections),
        )  # fmt: skip
        at.stage.sql("ANALYZE sends")
        campaign_id = at.stage.approved()
        held = []
        with at.sending():
            at.wait_until(lambda: held.append(_sending_count(at)) or at.stage.row(campaign_id).status == "sent")
        assert 0 < max(held) <= 4 * connections
        assert sink.open_most <= connections
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
        at.check_books(sink, campaign_id)


def _sending_count(at: House) -> int:
    return at.stage.sql("SELECT count(*) FROM sends WHERE status = 'sending'")[0][0]


def test_who_opts_out_while_the_message_waits_gets_nothing_more(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C51: a complaint while a retry waits, and the link of an older mail; asked for last, at the hand-over."""
    emails = _addresses("x1", "x2", "x3", "x4")
    with Sink(Rule(stage="DOT", recipient="x2@example.com", reply="451 4.3.0 later")) as sink:
        at = house(
            engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, MAX_RATE="1/s", RETRY_BASE_SECONDS="4"
        )
        old_id = at.stage.approved()
        with at.sending():
            at.wait_until(lambda: len(sink.datas) == 2)
            assert [each.recipient for each in sink.datas] == ["x1@example.com", "x2@example.com"]
            with transaction(engine) as session:
                suppress(
                    session, at.stage.account_id, email_lower="x2@example.com", kind="complained", reason="said spam"
                )
            link = message_from_bytes(sink.accepted[0].wire, policy=policy.default)["List-Unsubscribe"].strip("<>")
            ticket = read_token(at.settings().secret_key, urlsplit(link).path.rpartition("/")[2])
            _leave_as(at, ticket, "x3@example.com")
            at.wait_until_sent(old_id, timeout_s=30)
        assert Counter(each.recipient for each in sink.datas) == {
            "x1@example.com": 1,
            "x2@example.com": 1,
            "x4@example.com": 1,
        }
        states = at.rows("status", "provider_reply", "finished_at")
        for email, word in (("x2@example.com", "complained"), ("x3@example.com", "unsubscribed")):
            status, reply, finished_at = states[email]
            assert status == "suppressed"
            assert reply.startswith("suppressed after queueing")
            assert word in reply
            assert finished_at is not None
        at.check_books(sink, old_id)


def _leave_as(at: House, ticket, email: str) -> None:
    """Uses the link that the person with this address has from the same campaign."""
    with transaction(at.engine) as session:
        other = at.rows("subscriber_id", "id")[email]
        audience.leave(session, ticket.__class__(ticket.account_id, ticket.list_id, *other))


def test_who_opts_out_before_a_scheduled_campaign_starts_gets_nothing(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C51, run B: scheduled earlier, left before the start."""
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=_addresses("x1", "x2"), smtp_url=sink.url)
        campaign_id = at.stage.approved(scheduled_for=clock.now() + timedelta(seconds=1.5))
        with at.sending():
            with transaction(engine) as session:
                audience.suppress(session, at.stage.account_id, email="x1@example.com", reason="left this morning")
            at.wait_until_sent(campaign_id)
        assert [each.recipient for each in sink.datas] == ["x2@example.com"]
        assert at.statuses() == {"x1@example.com": "suppressed", "x2@example.com": "sent"}
        at.check_books(sink, campaign_id)


def _was_due(at: House, campaign_id: int, *, hours_ago: float) -> None:
    at.stage.sql(
        "UPDATE campaigns SET scheduled_for = now() - make_interval(secs => :s) WHERE id = :id",
        s=hours_ago * 3600,
        id=campaign_id,
    )


def test_a_campaign_that_was_due_while_all_was_down_starts_once_and_late(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C65, run A: due seven minutes ago; two processes come up together."""
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, smtp_url=sink.url)
        campaign_id = at.stage.approved()
        _was_due(at, campaign_id, hours_ago=7 / 60)
        with at.sending(), at.sending():
            at.wait_until_sent(campaign_id)
        row = at.stage.row(campaign_id)
        assert row.scheduled_for is not None
        assert row.started_at is not None
        assert row.started_at - row.scheduled_for > timedelta(minutes=7)
        assert at.stage.sql("SELECT count(*) FROM triggers")[0][0] == 1
        assert len(sink.datas) == 2
        at.check_books(sink, campaign_id)


def test_a_campaign_that_is_days_late_is_held_and_not_lost(engine: Engine, database_url: str, tmp_path: Path) -> None:
    """C65, run C: three days late with a limit of 24 hours; held with a notice, sent when a person says so."""
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, smtp_url=sink.url, LATE_LIMIT_HOURS="24")
        campaign_id = at.stage.approved()
        _was_due(at, campaign_id, hours_ago=72)
        with at.sending():
            at.wait_until(lambda: at.stage.row(campaign_id).status == "paused")
            note = at.stage.row(campaign_id).note
            assert note is not None
            assert "24" in note
            assert "Held" in _page_of(at, campaign_id)
            assert sink.datas == []
            at.stage.do("resume", campaign_id)
            at.wait_until_sent(campaign_id)
        assert len(sink.datas) == 2
        at.check_books(sink, campaign_id)


@pytest.mark.parametrize("then", ["close", "reset"])
def test_what_follows_a_message_in_doubt_is_sent_on_another_line(
    engine: Engine, database_url: str, tmp_path: Path, then: str
) -> None:
    """The next message's commands went out behind the dot whose answer is missing: it costs that one nothing."""
    emails = _addresses("a", "b", "c", "d")
    rule = Rule(stage="DOT", recipient="a@example.com", then=then, accepts=True)  # type: ignore[arg-type]
    with Sink(rule) as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="1")
        campaign_id = at.stage.approved()
        with at.sending():
            at.wait_until_sent(campaign_id)
        assert Counter(each.recipient for each in sink.accepted) == dict.fromkeys(emails, 1)
        with transaction(engine) as session:
            found = session.execute(text("SELECT email, status, attempt_no FROM sends ORDER BY email")).all()
        assert [tuple(row) for row in found] == [
            ("a@example.com", "in_doubt", 1),
            *((email, "sent", 1) for email in emails[1:]),
        ]
        at.check_books(sink, campaign_id, doubts=1)
