"""The provider's circuit breaker, with a real worker: trouble to connect burns no attempts and is counted once."""

from collections import Counter
from pathlib import Path

import psycopg
from house import house
from peers.sink import Sink
from peers.sink_script import Rule
from sqlalchemy import Engine

EMAILS = [f"b{number}@example.com" for number in range(12)]


def _state(database_url: str) -> tuple:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT breaker, failure_count, error, next_try_at FROM provider_states").fetchone()
    return row or ("closed", 0, None, None)


def test_connections_that_fail_side_by_side_are_one_failure(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with Sink(is_listening=False) as sink:
        at = house(engine, database_url, tmp_path, emails=EMAILS, smtp_url=sink.url)
        campaign_id = at.stage.approved()
        with at.sending(CONNECTIONS="12"):
            at.wait_until(lambda: _state(database_url)[0] == "open")
            breaker, failure_count, error, next_try_at = _state(database_url)
            assert (breaker, failure_count) == ("open", 1)
            assert "refused" in error.lower()
            assert next_try_at is not None
            sink.accept_connections()
            at.wait_until_sent(campaign_id)
        assert _state(database_url)[:2] == ("closed", 0)
        assert {each.recipient for each in sink.accepted} == set(EMAILS)
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT max(attempt_no) FROM sends").fetchone() == (1,)


def test_a_server_that_asks_for_a_sign_in_pauses_the_provider_and_burns_nothing(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """530 at MAIL says nothing of the message (RFC 4954, 6)."""
    with Sink(Rule(stage="MAIL", reply="530 5.7.0 Authentication required", times=3)) as sink:
        at = house(engine, database_url, tmp_path, emails=EMAILS, smtp_url=sink.url)
        campaign_id = at.stage.approved()
        with at.sending(CONNECTIONS="3"):
            at.wait_until(lambda: _state(database_url)[0] == "open")
            assert "Authentication required" in _state(database_url)[2]
            at.wait_until_sent(campaign_id, timeout_s=40)
        assert {each.recipient for each in sink.accepted} == set(EMAILS)
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT count(*) FROM attempts WHERE outcome <> 'accepted'").fetchone() == (0,)


def test_a_server_that_answers_no_message_is_left_alone_and_most_of_the_campaign_is_not_in_doubt(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """It drops the line after each dot: ten in a row and those under way are in doubt, then one with each try."""
    emails = [f"d{number:03d}@example.com" for number in range(150)]
    with Sink(Rule(stage="DOT", then="close")) as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url)
        campaign_id = at.stage.approved()
        with at.sending(CONNECTIONS="4"):
            at.wait_until(lambda: _state(database_url)[1] >= 2)
            assert "in a row were handed over and not answered; last: " in _state(database_url)[2]
            at.wait_until(lambda: "sending" not in at.statuses().values())
            # The second failure's wait is ten seconds: nothing is under way when the server is well again.
            sink.script.clear()
            doubtful = [email for email, status in at.statuses().items() if status == "in_doubt"]
            assert 10 <= len(doubtful) <= 10 + 2 * 4 + 2
            at.wait_until_sent(campaign_id, timeout_s=60)
        assert Counter(at.statuses().values()) == {"sent": 150 - len(doubtful), "in_doubt": len(doubtful)}
        assert Counter(each.recipient for each in sink.datas) == dict.fromkeys(emails, 1)
