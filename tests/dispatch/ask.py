"""Runs the dispatch statements from a test, one after the other, and sets up a campaign that is sending."""

import select
from collections.abc import Sequence
from dataclasses import dataclass

import make
import psycopg
from sqlalchemy import Engine, text

from console.db import transaction
from console.dispatch import recorder, store
from console.dispatch.asker import Asker, Statement, connect
from console.dispatch.recorder import QUEUE_START, Claimed, Outcome, Position
from console.providers.base import Accepted, Reply
from console.sends.states import State

ACCEPTED = Accepted(Reply("end", 250, "2.0.0", "250 2.0.0 ok"))


@dataclass(frozen=True)
class Sending:
    """A campaign that is sending."""

    account_id: int
    campaign_id: int
    list_id: int


def sending(engine: Engine, *, recipients: int = 3, prefix: str = "r", slug: str = "acme") -> Sending:
    """A campaign in `sending` with that many queued rows, addressed r0@example.com and so on."""
    with transaction(engine) as session:
        account_id = make.account(session, slug)
        author_id = make.user(session, account_id, email="mia@example.com", roles=("marketer",))
        approver_id = make.user(session, account_id, email="abe@example.com", roles=("approver",))
        list_id = make.mailing_list(session, account_id)
        campaign_id = make.campaign(
            session, account_id, author_id=author_id, list_id=list_id, html="<p>Hello</p>", subject="News",
            status="sending", approver_id=approver_id, fingerprint="f", approved_fingerprint="f",
            scheduled_for=text("now()"), started_at=text("now()"), audience_built_at=text("now()"), correlation_id="c1",
        )  # fmt: skip
        session.execute(
            text("UPDATE campaign_contents SET text = 'Hello', fields = '{}' WHERE account_id = :account_id"),
            {"account_id": account_id},
        )
        for number in range(recipients):
            make.send(session, account_id, campaign_id=campaign_id, email=f"{prefix}{number}@example.com")
    return Sending(account_id, campaign_id, list_id)


class Hand:
    """One worker's identity and connection."""

    def __init__(self, database_url: str):
        self.connection = connect(database_url)
        self.asker = Asker(self.connection)
        self.worker_id = store.register(self.connection, host="test", pid=1, provider="smtp")

    def ask(self, statement: Statement, values: dict) -> list:
        self.asker.ask(statement, values)
        while (answer := self.asker.hear()) is None:
            select.select([self.asker], [], [], 5)
        return answer

    def claim(
        self,
        where: Sending,
        *,
        limit: int = 20,
        after: Position = QUEUE_START,
        age_cap_s: int = 345_600,
        through_ids: Sequence[int] = (),
    ) -> tuple[list[Claimed], Position | None]:
        values = recorder.claim_values(
            worker_id=self.worker_id, account_id=where.account_id, campaign_id=where.campaign_id,
            list_id=where.list_id, age_cap_s=age_cap_s, provider="smtp", limit=limit, after=after,
            slot=self.worker_id % 15, through_ids=through_ids,
        )  # fmt: skip
        return recorder.claimed_rows(
            self.ask(recorder.CLAIM, values),
            worker_id=self.worker_id, account_id=where.account_id, campaign_id=where.campaign_id,
        )  # fmt: skip

    def record(
        self, where: Sending, *, marks: list[Claimed] | None = None, outcomes: list[Outcome] | None = None
    ) -> tuple[list[int], list[int]]:
        """Gives the ids that were marked and those whose outcome went in."""
        values = recorder.record_values(
            outcomes=outcomes or [], marks=[(claimed, where.list_id) for claimed in marks or []],
            provider="smtp", slot=self.worker_id % 15,
        )  # fmt: skip
        marked, done = self.ask(recorder.RECORD, values)
        return marked, done

    def die(self) -> None:
        """Leaves no sign of life for an hour."""
        self.connection.execute(
            "UPDATE workers SET heartbeat_at = now() - interval '1 hour' WHERE id = %s", (self.worker_id,)
        )


def sent(claimed: Claimed) -> Outcome:
    """The outcome of an accepted message."""
    return Outcome(claimed, State.SENT, was_marked=True, outcome="accepted", phase="end", code=250, reply="250 ok")


def rows(database_url: str, *columns: str) -> dict[str, tuple]:
    """The given columns of all sends, by address."""
    with psycopg.connect(database_url) as connection:
        found = connection.execute(f"SELECT email, {', '.join(columns)} FROM sends ORDER BY email".encode()).fetchall()
    return {email: tuple(values) for email, *values in found}


def statuses(database_url: str) -> dict[str, str]:
    """The state of all sends, by address."""
    return {email: status for email, (status,) in rows(database_url, "status").items()}


def counters_differ(database_url: str) -> list[tuple]:
    """Where the counters don't equal the rows; empty when they agree."""
    columns = ("queued", "sending", "sent", "failed", "dead", "in_doubt", "suppressed", "cancelled", "expired")
    sums = ", ".join(f"'{column}', sum({column})" for column in columns)
    with psycopg.connect(database_url) as connection:
        counted = connection.execute(
            f"SELECT account_id, campaign_id, json_build_object({sums}) FROM campaign_counts"
            " GROUP BY account_id, campaign_id".encode()
        ).fetchall()
        found = connection.execute(
            "SELECT account_id, campaign_id, status, count(*) FROM sends WHERE campaign_id IS NOT NULL"
            " GROUP BY account_id, campaign_id, status"
        ).fetchall()
    kept = {(a, c, status): count for a, c, counts in counted for status, count in counts.items() if count}
    return sorted(set(kept.items()) ^ {((a, c, status), count) for a, c, status, count in found})
