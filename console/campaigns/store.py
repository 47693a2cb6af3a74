"""SQL of campaigns: reading them for screens and commands, and each change of status as a compare-and-set.

The sources of each change are literals here and the table in states.py; tests/campaigns/test_states.py holds the two
together. The audience's SQL is in audience_store.py.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from console.campaigns.models import CampaignContent
from console.errors import NotFound

COUNTED = ("queued", "sending", "sent", "failed", "dead", "in_doubt", "suppressed", "cancelled", "expired")


@dataclass(frozen=True, kw_only=True)
class CampaignRow:
    """A campaign as screens and commands need it, with the content in force. `counts` is by state of the sends."""

    account_id: int
    id: int
    name: str
    status: str
    list_id: int
    list_name: str
    message_type: str
    version: int
    requires_second_person: bool
    author_id: int
    author_name: str
    author_email: str
    approver_id: int | None
    approver_name: str | None
    approver_email: str | None
    fingerprint: str | None
    approved_fingerprint: str | None
    audience_estimate: int | None
    scheduled_for: datetime | None
    schedule_zone: str | None
    note: str | None
    submitted_at: datetime | None
    approved_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    audience_cursor: str
    audience_built_at: datetime | None
    correlation_id: str | None
    created_at: datetime
    updated_at: datetime
    subject: str
    sender: str
    html: str
    text: str
    fields: list[str]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def recipient_count(self) -> int:
        """How many sends there are by now, in whatever state."""
        return sum(self.counts.values())


_COLUMNS = """
    c.account_id, c.id, c.name, c.status, c.list_id, l.name AS list_name, c.message_type, c.version,
    c.requires_second_person, c.author_id, a.name AS author_name, a.email AS author_email, c.approver_id,
    p.name AS approver_name, p.email AS approver_email, c.fingerprint, c.approved_fingerprint, c.audience_estimate,
    c.scheduled_for, c.schedule_zone, c.note, c.submitted_at, c.approved_at, c.started_at, c.finished_at,
    c.audience_cursor, c.audience_built_at, c.correlation_id, c.created_at, c.updated_at, t.subject, t.sender, t.fields
"""
_SUMS = ", ".join(f"COALESCE(sum({state}), 0)::bigint AS {state}" for state in COUNTED)
_FROM = f"""
  FROM campaigns c
  JOIN lists l ON l.account_id = c.account_id AND l.id = c.list_id
  JOIN users a ON a.account_id = c.account_id AND a.id = c.author_id
  LEFT JOIN users p ON p.account_id = c.account_id AND p.id = c.approver_id
  JOIN campaign_contents t ON t.account_id = c.account_id AND t.campaign_id = c.id AND t.version = c.version
 CROSS JOIN LATERAL (SELECT {_SUMS} FROM campaign_counts n
                      WHERE n.account_id = c.account_id AND n.campaign_id = c.id) n
"""
_SHOW = text(f"SELECT {_COLUMNS}, t.html, t.text, n.* {_FROM} WHERE c.account_id = :account_id AND c.id = :campaign_id")
# Pages of a list don't show bodies, which may have 100 kB each.
_PAGE = text(
    f"SELECT {_COLUMNS}, '' AS html, '' AS text, n.* {_FROM} WHERE c.account_id = :account_id"
    " AND (CAST(:status AS text) IS NULL OR c.status = :status)"
    " AND (CAST(:before_id AS bigint) IS NULL OR c.id < :before_id) ORDER BY c.id DESC LIMIT :limit"
)


def show(session: Session, account_id: int, campaign_id: int) -> CampaignRow:
    """Gives the campaign with its content and counts.

    Raises: NotFound.
    """
    row = session.execute(_SHOW, {"account_id": account_id, "campaign_id": campaign_id}).one_or_none()
    if row is None:
        raise NotFound(f"There is no campaign {campaign_id} in this account.")
    return _campaign_row(row)


def page(
    session: Session, account_id: int, *, status: str | None = None, before_id: int | None = None, limit: int = 50
) -> list[CampaignRow]:
    """Gives up to `limit` campaigns, newest first, from before `before_id`; html and text are left empty."""
    values = {"account_id": account_id, "status": status, "before_id": before_id, "limit": limit}
    return [_campaign_row(row) for row in session.execute(_PAGE, values)]


def _campaign_row(row: Any) -> CampaignRow:
    columns = dict(row._mapping)
    counts = {state: columns.pop(state) for state in COUNTED}
    return CampaignRow(**columns, counts=counts)


def database_now(session: Session) -> datetime:
    """Gives the moment that now() has in this transaction."""
    return session.execute(text("SELECT now()")).scalar_one()


def insert_campaign(session: Session, account_id: int, *, columns: dict[str, Any]) -> int:
    """Adds a draft; gives its id. The account's rule about the second person is copied to it."""
    return session.execute(
        text(
            "INSERT INTO campaigns (account_id, name, list_id, author_id, requires_second_person)"
            " SELECT a.id, :name, :list_id, :author_id, a.requires_second_person FROM accounts a"
            "  WHERE a.id = :account_id RETURNING id"
        ),
        {"account_id": account_id, **columns},
    ).scalar_one()


def insert_content(
    session: Session, account_id: int, campaign_id: int, *, version: int, columns: dict[str, Any]
) -> None:
    """Adds a version of the content; versions are never changed."""
    session.execute(
        insert(CampaignContent).values(account_id=account_id, campaign_id=campaign_id, version=version, **columns)
    )


def _same(part: str) -> str:
    # Browsers send line ends as CR LF and drop the first of a text field; that alone is nobody's writing.
    kept, written = (
        f"btrim(regexp_replace({value}, E'\\r\\n?', E'\\n', 'g'), E' \\t\\n')" for value in (f"t.{part}", f":{part}")
    )
    return f"{kept} = {written}"


_SAME_CONTENT = " AND ".join(_same(part) for part in ("subject", "sender", "html", "text"))


def edit(
    session: Session, account_id: int, campaign_id: int, *, columns: dict[str, Any], content: dict[str, Any]
) -> int | None:
    """Makes it a draft with the next version, approval and schedule void; gives the version, None when it lost.

    Whoever changes nothing that is sent does not become the author: else the author's colleague could rename the
    campaign, and the author approve their own words.
    """
    return _changed(
        session,
        "version = version + 1, status = 'draft', name = :name, list_id = :list_id,"
        " author_id = CASE WHEN list_id = :list_id AND EXISTS (SELECT FROM campaign_contents t"
        " WHERE t.account_id = campaigns.account_id AND t.campaign_id = campaigns.id AND t.version = campaigns.version"
        f" AND {_SAME_CONTENT})"
        " THEN author_id ELSE :author_id END,"
        " approver_id = NULL, fingerprint = NULL, approved_fingerprint = NULL, scheduled_for = NULL,"
        " schedule_zone = NULL, submitted_at = NULL, approved_at = NULL, audience_estimate = NULL, note = NULL",
        "status IN ('draft','submitted','approved')",
        {
            "account_id": account_id,
            "campaign_id": campaign_id,
            **columns,
            **{part: content[part] for part in ("subject", "sender", "html", "text")},
        },
    )


def submit(
    session: Session, account_id: int, campaign_id: int, *, version: int, fingerprint: str, audience_estimate: int
) -> bool:
    """Moves the draft on, if it still has the version that the fingerprint is of."""
    values = {
        "account_id": account_id,
        "campaign_id": campaign_id,
        "version": version,
        "fingerprint": fingerprint,
        "audience_estimate": audience_estimate,
    }
    changed = _changed(
        session,
        "status = 'submitted', fingerprint = :fingerprint, audience_estimate = :audience_estimate,"
        " submitted_at = now(), note = NULL",
        "status = 'draft' AND version = :version",
        values,
    )
    return changed is not None


def approve(session: Session, account_id: int, campaign_id: int, *, columns: dict[str, Any]) -> bool:
    """Approves what has the fingerprint, unless the approver wrote it and a second person is required."""
    changed = _changed(
        session,
        "status = 'approved', approver_id = :approver_id, approved_fingerprint = :approved_fingerprint,"
        " scheduled_for = :scheduled_for, schedule_zone = :schedule_zone, approved_at = now(), note = NULL",
        "status = 'submitted' AND fingerprint = :fingerprint"
        " AND (NOT requires_second_person OR author_id <> :approver_id)",
        {"account_id": account_id, "campaign_id": campaign_id, **columns},
    )
    return changed is not None


def reject(session: Session, account_id: int, campaign_id: int, *, note: str) -> bool:
    """Makes it a draft again, with the reason; voids an approval."""
    changed = _changed(
        session,
        "status = 'draft', note = :note, approver_id = NULL, approved_fingerprint = NULL, fingerprint = NULL,"
        " scheduled_for = NULL, schedule_zone = NULL, submitted_at = NULL, approved_at = NULL",
        "status IN ('submitted','approved')",
        {"account_id": account_id, "campaign_id": campaign_id, "note": note},
    )
    return changed is not None


def pause(session: Session, account_id: int, campaign_id: int, *, note: str | None) -> bool:
    """Stops new claims and marks."""
    values = {"account_id": account_id, "campaign_id": campaign_id, "note": note}
    return _changed(session, "status = 'paused', note = :note", "status = 'sending'", values) is not None


def resume(session: Session, account_id: int, campaign_id: int) -> tuple[str, bool] | None:
    """Lets it send on. One that was held before it ever started, starts now.

    Gives: its correlation id, and whether it has started only now; None when it lost.
    """
    row = session.execute(
        text(
            "UPDATE campaigns SET status = 'sending', note = NULL, updated_at = now(),"
            "       started_at = COALESCE(started_at, now()),"
            "       correlation_id = COALESCE(correlation_id, replace(gen_random_uuid()::text, '-', ''))"
            " WHERE account_id = :account_id AND id = :campaign_id AND status = 'paused'"
            " RETURNING correlation_id, started_at = now()"
        ),
        {"account_id": account_id, "campaign_id": campaign_id},
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def cancel(session: Session, account_id: int, campaign_id: int, *, note: str | None) -> bool:
    """Stops it for good; its queued sends are cancelled afterwards, in chunks."""
    changed = _changed(
        session,
        "status = 'cancelled', note = :note, finished_at = now()",
        "status IN ('draft','submitted','approved','sending','paused')",
        {"account_id": account_id, "campaign_id": campaign_id, "note": note},
    )
    return changed is not None


def start_due(session: Session) -> list[tuple[int, int]]:
    """Moves approved campaigns whose time has come to sending, with one trigger each; gives (account, campaign)."""
    rows = session.execute(
        text(
            """
            WITH started AS (
                UPDATE campaigns
                   SET status = 'sending', started_at = now(), updated_at = now(),
                       correlation_id = replace(gen_random_uuid()::text, '-', '')
                 WHERE status = 'approved' AND scheduled_for <= now()
                RETURNING account_id, id, correlation_id, message_type
            ), asked AS (
                INSERT INTO triggers (account_id, source, code_path, correlation_id, campaign_id, decision,
                                      message_type, event, entities)
                SELECT account_id, 'cron', 'campaigns.ticks.start_due', correlation_id, id, 'accepted', message_type,
                       'campaign', jsonb_build_object('campaign_id', id::text)
                  FROM started
            )
            SELECT account_id, id FROM started
            """
        )
    )
    return [(row[0], row[1]) for row in rows]


def hold_late(session: Session, *, late_limit_h: float) -> list[tuple[int, int]]:
    """Pauses approved campaigns that should have started longer ago than the limit; gives (account, campaign)."""
    rows = session.execute(
        text(
            """
            UPDATE campaigns
               SET status = 'paused', updated_at = now(),
                   note = 'Held: it was due ' || to_char(scheduled_for AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
                          || ' UTC, more than ' || :limit_words || ' h ago. Resume it to send it now, or cancel it.'
             WHERE status = 'approved' AND scheduled_for < now() - make_interval(secs => :late_limit_s)
            RETURNING account_id, id
            """
        ),
        {"late_limit_s": late_limit_h * 3600, "limit_words": f"{late_limit_h:g}"},
    )
    return [(row[0], row[1]) for row in rows]


def finish_done(session: Session) -> list[tuple[int, int]]:
    """Moves campaigns to sent whose audience is complete and that have no queued or sending row.

    The counters decide, cheaply, when it is worth looking; the partial indexes have the last word, so that a wrong
    counter can't finish a campaign early. The campaign is held first: who is just putting a dead letter back holds it
    too, and the second statement sees what they have committed.
    """
    done = session.execute(
        text(
            """
            SELECT c.id FROM campaigns c
             WHERE c.status = 'sending' AND c.audience_built_at IS NOT NULL
               AND (SELECT COALESCE(sum(n.queued), 0) <= 0 AND COALESCE(sum(n.sending), 0) <= 0
                      FROM campaign_counts n WHERE n.account_id = c.account_id AND n.campaign_id = c.id)
             ORDER BY c.id
               FOR NO KEY UPDATE OF c SKIP LOCKED
            """
        )
    )
    campaign_ids = list(done.scalars())
    if not campaign_ids:
        return []
    rows = session.execute(
        text(
            """
            UPDATE campaigns c
               SET status = 'sent', finished_at = now(), updated_at = now()
             WHERE c.status = 'sending' AND c.id = ANY(:campaign_ids)
               AND NOT EXISTS (SELECT FROM sends s WHERE s.account_id = c.account_id AND s.campaign_id = c.id
                                                     AND s.is_queued)
               AND NOT EXISTS (SELECT FROM claims k CROSS JOIN unnest(k.send_ids) AS held (id)
                                 JOIN sends s ON s.account_id = k.account_id AND s.id = held.id
                                WHERE k.account_id = c.account_id AND k.campaign_id = c.id AND s.status = 'sending')
            RETURNING c.account_id, c.id
            """
        ),
        {"campaign_ids": campaign_ids},
    )
    return [(row[0], row[1]) for row in rows]


def insert_trigger(
    session: Session, account_id: int, *, campaign_id: int, source: str, code_path: str, correlation_id: str
) -> None:
    """Adds the trigger of a campaign that a person started."""
    session.execute(
        text(
            "INSERT INTO triggers (account_id, source, code_path, correlation_id, campaign_id, decision, message_type,"
            "                      event, entities)"
            " SELECT account_id, :source, :code_path, :correlation_id, id, 'accepted', message_type, 'campaign',"
            "        jsonb_build_object('campaign_id', id::text)"
            "   FROM campaigns WHERE account_id = :account_id AND id = :campaign_id"
        ),
        {
            "account_id": account_id,
            "source": source,
            "code_path": code_path,
            "correlation_id": correlation_id,
            "campaign_id": campaign_id,
        },
    )


def wake_workers(session: Session) -> None:
    """Tells all workers, when the transaction commits, that there is new work."""
    session.execute(text("SELECT pg_notify('sendonce_work', '')"))


def _changed(session: Session, assignments: str, condition: str, values: dict[str, Any]) -> int | None:
    """Makes one compare-and-set; gives the version of the campaign that it changed, None when it changed none."""
    return session.execute(
        text(
            f"UPDATE campaigns SET {assignments}, updated_at = now()"
            f" WHERE account_id = :account_id AND id = :campaign_id AND {condition} RETURNING version"
        ),
        values,
    ).scalar_one_or_none()
