"""The provider's circuit breaker, with a real worker: trouble to connect burns no attempts and is counted once."""

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
