"""A dead letter and a send in doubt that are sent again, by a real worker over a real connection."""

from pathlib import Path

import make
from house import House, house
from peers.sink import Sink
from peers.sink_script import Rule
from sqlalchemy import Engine

from console.db import transaction
from console.sends import settle
from console.sends.states import Change, State
from console.sends.unsettled_store import Chosen, page


def _settle_all(at: House, change: Change, status: State) -> int:
    """Freezes and runs all that there is; gives how many moved."""
    account_id = at.stage.account_id
    with transaction(at.engine) as session:
        user_id = make.user(session, account_id, email=f"{change}@example.com", roles=("operator",))
        set_id = settle.freeze(session, account_id, user_id=user_id, change=change, chosen=Chosen(status))
    assert set_id is not None
    with transaction(at.engine) as session:
        return settle.run(session, account_id, set_id, user_id=user_id, reason="The relay is back.").moved_count


def test_a_dead_letter_put_back_gets_all_its_attempts_again_and_its_campaign_ends_sent(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=["rita@example.com"], smtp_url=sink.url)
        at.stage.sql("UPDATE message_types SET attempt_cap = 2")
        campaign_id = at.stage.approved()
        sink.script.append(Rule(stage="RCPT", times=3, reply="451 4.7.1 Greylisted"))
        with at.sending(RETRY_BASE_SECONDS="0.1"):
            at.wait_until_sent(campaign_id)
            assert at.rows("status", "attempt_no", "error_class") == {"rita@example.com": ("dead", 2, "451-4.7.1-rcpt")}
            # Older than its age cap, too.
            at.stage.sql("UPDATE sends SET first_due_at = now() - interval '9 days'")
            assert _settle_all(at, Change.REVIVE, State.DEAD) == 1
            # The third attempt is put off: it is the first of the new ones.
            at.wait_until(lambda: at.statuses() == {"rita@example.com": "sent"})
            at.wait_until_sent(campaign_id)
        assert at.rows("attempt_no", "error_class") == {"rita@example.com": (4, "")}
        assert [each.recipient for each in sink.accepted] == ["rita@example.com"]
        at.check_books(sink, campaign_id)


def test_a_send_in_doubt_that_is_sent_again_is_the_same_message(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink() as sink:
        at = house(engine, database_url, tmp_path, emails=["rita@example.com"], smtp_url=sink.url)
        campaign_id = at.stage.approved()
        sink.script.append(Rule(stage="DOT", times=1, then="close", accepts=True))
        with at.sending():
            at.wait_until_sent(campaign_id)
            with transaction(engine) as session:
                [row] = page(session, at.stage.account_id, Chosen(State.IN_DOUBT)).rows
            assert (row.status, row.error_class, row.provider) == ("in_doubt", "no-answer-end", "smtp")
            assert row.handed_over_at is not None
            assert row.worker_status == "alive"
            assert _settle_all(at, Change.SETTLE_RESEND, State.IN_DOUBT) == 1
            at.wait_until(lambda: at.statuses() == {"rita@example.com": "sent"})
            at.wait_until_sent(campaign_id)
        first, second = sink.datas
        assert first.message_id == second.message_id == row.message_id
        assert first.wire == second.wire
