"""SQL of what there is to send: campaigns that are sending, lanes with due rows, and the contents of both.

Each function is one statement on a connection that commits by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from psycopg import Connection

from console.content.source import Source
from console.dispatch.route_store import chosen
from console.providers.store import Configured


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
    message_type: str
    correlation_id: str
    trigger_source: str
    # The messages whose turn this provider is: those whose attempts modulo the route's size are among the places.
    route_size: int = 1
    places: Sequence[int] = (0,)


def jobs(connection: Connection, account_id: int | None = None, provider: str = "smtp") -> list[Job]:
    """Gives the campaigns that are sending, of one account or of all, some of whose messages may go by this provider.

    Those include the ones that wait for it alone (bound), though it is not its turn.
    """
    rows = connection.execute(
        f"""
        SELECT c.account_id, a.slug, c.id, c.list_id, l.name, c.version, t.in_doubt_policy, t.attempt_cap, t.age_cap_s,
               t.name, COALESCE(c.correlation_id, ''),
               COALESCE((SELECT g.source FROM triggers g WHERE g.account_id = c.account_id AND g.campaign_id = c.id
                          ORDER BY g.id LIMIT 1), ''),
               cardinality(way.names), way.places
          FROM campaigns c
          JOIN accounts a ON a.id = c.account_id
          JOIN lists l ON l.account_id = c.account_id AND l.id = c.list_id
          JOIN message_types t ON t.account_id = c.account_id AND t.name = c.message_type
          LEFT JOIN routes r ON r.account_id = t.account_id AND r.name = COALESCE(t.route, 'default')
         CROSS JOIN LATERAL (
               SELECT n.names, ARRAY(SELECT k::int FROM generate_series(0, cardinality(n.names) - 1) AS k
                                      WHERE {chosen("c.account_id", "n.names", "k")} = %(provider)s) AS places
                 FROM (SELECT COALESCE(r.providers, ARRAY['smtp'])) AS n (names)) AS way
         WHERE c.status = 'sending' AND (%(account_id)s::bigint IS NULL OR c.account_id = %(account_id)s)
           AND %(provider)s = ANY(way.names)
         ORDER BY c.started_at, c.id
        """.replace(" % cardinality", " %% cardinality").encode(),
        {"account_id": account_id, "provider": provider},
    ).fetchall()
    return [Job(*row) for row in rows]


def accounts_with_due(connection: Connection, lane: str, account_id: int | None) -> list[tuple[int, str]]:
    """Gives (id, slug) of the accounts (None: all; else this one) that have due rows of the lane outside campaigns."""
    return connection.execute(
        """
        SELECT a.id, a.slug FROM accounts a
         WHERE (%(account_id)s::bigint IS NULL OR a.id = %(account_id)s)
           AND EXISTS (SELECT FROM sends s WHERE s.account_id = a.id AND s.lane = %(lane)s AND s.is_queued
                                             AND s.campaign_id IS NULL AND s.due_at <= now())
         ORDER BY a.id
        """,
        {"account_id": account_id, "lane": lane},
    ).fetchall()


_CONFIGURED = ("account_id", "id", "name", "kind", "settings", "sealed_secret", "version", "changed_at")


def routed_providers(connection: Connection) -> list[Configured]:
    """Gives the configured providers that a route names, of all accounts."""
    rows = connection.execute(
        """
        SELECT p.account_id, p.id, p.name, p.kind, p.settings, p.sealed_secret, p.version, p.changed_at
          FROM providers p
         WHERE EXISTS (SELECT FROM routes r WHERE r.account_id = p.account_id AND p.name = ANY(r.providers))
         ORDER BY p.account_id, p.id
        """
    ).fetchall()
    return [Configured(**dict(zip(_CONFIGURED, row, strict=True))) for row in rows]


def configured_providers(connection: Connection) -> list[Configured]:
    """Gives all configured providers, of all accounts."""
    rows = connection.execute(
        "SELECT account_id, id, name, kind, settings, sealed_secret, version, changed_at FROM providers"
    ).fetchall()
    return [Configured(**dict(zip(_CONFIGURED, row, strict=True))) for row in rows]


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
