"""Dead letters and messages in doubt to be settled by a test, and what their settling must leave behind."""

from typing import Any

from sqlalchemy import text
from visit import Office

from console.campaigns.counts_store import check_counters
from console.db import transaction
from console.sends import settle, settle_store
from console.sends.settle import Ran
from console.sends.states import Change
from console.sends.unsettled_store import Chosen


def dead(office: Office, campaign_id: int | None = None, **columns: Any) -> int:
    """The id of a dead letter that was tried twelve times, four days long."""
    values = {
        "email": "rita@example.com",
        "attempt_no": 12,
        "error_class": "451-4.7.1-rcpt",
        "provider_reply": "gave up after 12 attempts; last: 451 4.7.1 Greylisted",
        "first_due_at": text("now() - interval '4 days'"),
        "claimed_at": text("now() - interval '1 hour'"),
        **columns,
    }
    return office.send(campaign_id=campaign_id, status="dead", **values)


def doubtful(office: Office, campaign_id: int | None = None, **columns: Any) -> int:
    """The id of a send in doubt, handed over an hour ago."""
    values = {
        "email": "rita@example.com",
        "attempt_no": 1,
        "error_class": "no-answer-end",
        "provider_reply": "no answer after the hand-over: connection lost",
        "claimed_by": 7,
        "claimed_at": text("now() - interval '1 hour'"),
        "handed_over_at": text("now() - interval '1 hour'"),
        **columns,
    }
    return office.send(campaign_id=campaign_id, status="in_doubt", **values)


def freeze(office: Office, change: Change, *send_ids: int, chosen: Chosen | None = None, by: str = "oda") -> int:
    """The number of a set that this person was shown."""
    with transaction(office.engine) as session:
        set_id = settle.freeze(
            session, office.account_id, user_id=office.users[by], change=change, chosen=chosen, send_ids=send_ids
        )
    assert set_id is not None
    return set_id


def run(office: Office, set_id: int, *, by: str = "oda", reason: str = "The relay is back.") -> Ran:
    with transaction(office.engine) as session:
        return settle.run(session, office.account_id, set_id, user_id=office.users[by], reason=reason)


def settled(office: Office, change: Change, *send_ids: int, **options: Any) -> Ran:
    """Freezes and runs at once."""
    return run(office, freeze(office, change, *send_ids), **options)


def sql(office: Office, statement: str, **values: Any) -> list[Any]:
    """Runs a statement of the test's own; gives its rows, if it has any."""
    with transaction(office.engine) as session:
        result = session.execute(text(statement), values)
        return list(result) if result.returns_rows else []  # type: ignore[attr-defined]


def states(office: Office) -> dict[int, str]:
    """The state of each send."""
    return {row[0]: row[1] for row in sql(office, "SELECT id, status FROM sends")}


def check_counts(office: Office) -> None:
    """The counters are what the rows are."""
    with transaction(office.engine) as session:
        assert check_counters(session) == []


def decisions(office: Office, send_id: int) -> list[tuple[str, str, str]]:
    """What was decided about a send: change, who, why."""
    with transaction(office.engine) as session:
        found = settle_store.decisions(session, office.account_id, send_id)
    return [(each.change.value, each.by_name, each.reason) for each in found]
