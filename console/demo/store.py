"""SQL of the demo, the drill and the bench: what the ledger says at the end, who works, made-up people in bulk."""

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from console.audience.store import make_list
from console.demo.verdict import Row


def rows_of_campaign(session: Session, account_id: int, campaign_id: int) -> list[Row]:
    """Gives all of a campaign's sends; for runs of up to some 100,000."""
    found = session.execute(
        text(
            "SELECT email_lower, status, message_id FROM sends"
            " WHERE account_id = :account_id AND campaign_id = :campaign_id"
        ),
        {"account_id": account_id, "campaign_id": campaign_id},
    )
    return [Row(*row) for row in found]


def addresses_on_list(session: Session, account_id: int, *, list_name: str, limit: int) -> list[str]:
    """Gives the first addresses of a list, in the order of the alphabet."""
    found = session.execute(
        text(
            "SELECT s.email FROM lists l"
            "  JOIN list_members m ON m.account_id = l.account_id AND m.list_id = l.id"
            "  JOIN subscribers s ON s.account_id = m.account_id AND s.id = m.subscriber_id"
            " WHERE l.account_id = :account_id AND l.name = :list_name ORDER BY s.email_lower LIMIT :limit"
        ),
        {"account_id": account_id, "list_name": list_name, "limit": limit},
    )
    return list(found.scalars())


def queued_addresses(session: Session, account_id: int, campaign_id: int, *, limit: int) -> list[str]:
    """Gives addresses from the end of the campaign's queue: those that will be reached last."""
    found = session.execute(
        text(
            "SELECT email FROM sends WHERE account_id = :account_id AND campaign_id = :campaign_id"
            " AND is_queued ORDER BY due_at DESC, id DESC LIMIT :limit"
        ),
        {"account_id": account_id, "campaign_id": campaign_id, "limit": limit},
    )
    return list(found.scalars())


def any_send(session: Session, account_id: int, campaign_id: int) -> int:
    """Gives the id of one of the campaign's sends."""
    return session.execute(
        text("SELECT id FROM sends WHERE account_id = :account_id AND campaign_id = :campaign_id LIMIT 1"),
        {"account_id": account_id, "campaign_id": campaign_id},
    ).scalar_one()


def count_sends(session: Session, account_id: int) -> int:
    """Counts the account's sends, row by row; for the end of a run."""
    return session.execute(
        text("SELECT count(*) FROM sends WHERE account_id = :account_id"), {"account_id": account_id}
    ).scalar_one()


def settle(engine: Engine) -> None:
    """Brings statistics up to date and writes out what is dirty, as it is when a campaign has waited for its time."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE) sends, subscribers, list_members"))
        connection.execute(text("CHECKPOINT"))


def finish_moments(session: Session, account_id: int, campaign_id: int) -> list[float]:
    """Gives when each of the campaign's sends was finished, in seconds since the first one, in order."""
    found = session.execute(
        text(
            "SELECT extract(epoch FROM finished_at - min(finished_at) OVER ())::float8 FROM sends"
            " WHERE account_id = :account_id AND campaign_id = :campaign_id AND status = 'sent' ORDER BY finished_at"
        ),
        {"account_id": account_id, "campaign_id": campaign_id},
    )
    return list(found.scalars())


def identities_of(session: Session, *, host: str, pid: int) -> dict[int, str]:
    """Gives the worker identities that a process has had, with their status."""
    found = session.execute(
        text("SELECT id, status FROM workers WHERE host = :host AND pid = :pid"), {"host": host, "pid": pid}
    )
    return {row[0]: row[1] for row in found}


def held_count(session: Session, worker_ids: Iterable[int]) -> int:
    """Gives how many rows the identities hold."""
    return session.execute(
        text(
            "SELECT count(*) FROM claims k CROSS JOIN unnest(k.send_ids) AS held (id)"
            "  JOIN sends s ON s.account_id = k.account_id AND s.id = held.id"
            " WHERE k.worker_id = ANY(:worker_ids) AND s.claimed_by = k.worker_id AND s.status = 'sending'"
        ),
        {"worker_ids": list(worker_ids)},
    ).scalar_one()


def live_worker_count(session: Session, *, within_s: float) -> int:
    """Gives how many workers gave a sign of life lately."""
    return session.execute(
        text(
            "SELECT count(*) FROM workers WHERE status = 'alive'"
            " AND heartbeat_at > now() - make_interval(secs => :within_s)"
        ),
        {"within_s": within_s},
    ).scalar_one()


def moving_campaigns(session: Session) -> list[tuple[str, int]]:
    """Gives (slug, campaign) of all campaigns that a worker would send, now or when their time comes."""
    found = session.execute(
        text(
            "SELECT a.slug, c.id FROM campaigns c JOIN accounts a ON a.id = c.account_id"
            " WHERE c.status IN ('approved','sending') ORDER BY c.id LIMIT 20"
        )
    )
    return [(row[0], row[1]) for row in found]


def insert_people(session: Session, account_id: int, *, list_name: str, people: Iterable[tuple[str, Any]]) -> int:
    """Puts (address in lower case, attributes) into the account and onto a list; gives the list's id.

    By COPY and without the import's checks: made-up people only. None of them may be in the account already.
    """
    list_id = make_list(session, account_id, list_name)
    driver = session.connection().connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    with driver.cursor() as cursor:
        with cursor.copy("COPY subscribers (account_id, email, email_lower, attributes) FROM STDIN") as copy:
            for email, attributes in people:
                copy.write_row((account_id, email, email, Jsonb(attributes)))
        cursor.execute(
            "INSERT INTO list_members (account_id, list_id, subscriber_id)"
            " SELECT account_id, %s, id FROM subscribers WHERE account_id = %s",
            (list_id, account_id),
        )
    return list_id
