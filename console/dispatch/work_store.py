"""SQL of what there is to send: campaigns that are sending, lanes with due rows, and the contents of both.

Each function is one statement on a connection that commits by itself.
"""

from dataclasses import dataclass
from typing import Protocol

from psycopg import Connection

from console.content.source import Source


class Terms(Protocol):
    """How answers to messages of one kind are taken, and whose opt-outs stop them besides those from everything."""

    @property
    def list_id(self) -> int | None: ...
    @property
    def in_doubt_policy(self) -> str: ...
    @property
    def attempt_cap(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TypeTerms:
    """The terms of a message type."""

    in_doubt_policy: str
    attempt_cap: int
    list_id: None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A campaign that is sending, with all that its messages need."""

    account_id: int
    account_slug: str
    campaign_id: int
    list_id: int
    list_name: str
    version: int
    in_doubt_policy: str
    attempt_cap: int
    age_cap_s: int


def jobs(connection: Connection) -> list[Job]:
    """Gives the campaigns that are sending, of all accounts: dispatch serves the whole installation."""
    rows = connection.execute(
        """
        SELECT c.account_id, a.slug, c.id, c.list_id, l.name, c.version, t.in_doubt_policy, t.attempt_cap, t.age_cap_s
          FROM campaigns c
          JOIN accounts a ON a.id = c.account_id
          JOIN lists l ON l.account_id = c.account_id AND l.id = c.list_id
          JOIN message_types t ON t.account_id = c.account_id AND t.name = c.message_type
         WHERE c.status = 'sending'
         ORDER BY c.started_at, c.id
        """
    ).fetchall()
    return [Job(*row) for row in rows]


def accounts_with_due(connection: Connection, lane: str) -> list[tuple[int, str]]:
    """Gives (id, slug) of the accounts that have due rows of the lane outside campaigns."""
    return connection.execute(
        """
        SELECT a.id, a.slug FROM accounts a
         WHERE EXISTS (SELECT FROM sends s WHERE s.account_id = a.id AND s.lane = %s AND s.is_queued
                                             AND s.campaign_id IS NULL AND s.due_at <= now())
         ORDER BY a.id
        """,
        (lane,),
    ).fetchall()


def terms(connection: Connection, account_id: int, message_type: str) -> TypeTerms:
    """Gives the message type's terms."""
    row = connection.execute(
        "SELECT in_doubt_policy, attempt_cap FROM message_types WHERE account_id = %s AND name = %s",
        (account_id, message_type),
    ).fetchone()
    assert row is not None
    return TypeTerms(*row)


def send_content(connection: Connection, account_id: int, content_id: int) -> tuple[Source, bool]:
    """Gives a content, and whether it is finished parts."""
    row = connection.execute(
        "SELECT subject, sender, html, text, is_rendered FROM send_contents WHERE account_id = %s AND id = %s",
        (account_id, content_id),
    ).fetchone()
    assert row is not None
    return Source(*row[:4]), row[4]


def content(connection: Connection, job: Job) -> tuple[str, str, str, str]:
    """Gives subject, sender, html and text of the job's version."""
    row = connection.execute(
        "SELECT subject, sender, html, text FROM campaign_contents"
        " WHERE account_id = %s AND campaign_id = %s AND version = %s",
        (job.account_id, job.campaign_id, job.version),
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2], row[3]
