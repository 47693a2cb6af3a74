"""SQL of evidence: all rows about one recipient in a window, each statement along an index; and ids to their sends."""

from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.incidents.evidence import Asked, Came, Decided, Enqueued, Evidence, Redelivered, Reported, Tried

# A person who got more messages than these in one window got them otherwise than twice.
SENDS_LIMIT = 200
TRIGGERS_LIMIT = 1000
# So many of the newest sends are looked through for a provider's id. It is in no index, because outcomes write it, and
# would change that index with every message. Measured 2026-11-30: 20,000 rows take 14 ms.
SCAN_ROWS = 50_000

_SENDS = text(
    """
    SELECT s.id, s.created_at AS at, s.email, s.status, COALESCE(s.message_type, 'campaign') AS message_type,
           COALESCE(n.subject, k.subject, '') AS subject, s.dedupe_key, s.message_id,
           COALESCE(s.provider_id, '') AS provider_id, s.correlation_id, s.campaign_id,
           COALESCE(c.name, '') AS campaign_name, s.merge_values AS params, COALESCE(s.provider_reply, '') AS reply,
           COALESCE(t.in_doubt_policy, 'hold') AS policy, s.finished_at, s.due_at, s.interrupted_count
      FROM sends s
      LEFT JOIN send_contents n ON n.account_id = s.account_id AND n.id = s.content_id
      LEFT JOIN campaigns c ON c.account_id = s.account_id AND c.id = s.campaign_id
      LEFT JOIN campaign_contents k ON k.account_id = c.account_id AND k.campaign_id = c.id AND k.version = c.version
      LEFT JOIN message_types t ON t.account_id = s.account_id
                               AND t.name = COALESCE(s.message_type, c.message_type, 'campaign')
     WHERE s.account_id = :account_id AND s.email_lower = :email_lower AND s.created_at <= :until
       AND (s.created_at >= :since OR s.finished_at >= :since OR s.claimed_at >= :since)
       AND (CAST(:message_type AS text) IS NULL OR COALESCE(s.message_type, 'campaign') = :message_type)
     ORDER BY s.id DESC
     LIMIT :limit
    """
)
_TRIGGER = """
    SELECT t.id, t.at, t.source, t.code_path, COALESCE(t.event, '') AS event, t.entities, t.decision,
           COALESCE(t.dedupe_key, '') AS dedupe_key, COALESCE(t.request_id, '') AS request_id, t.correlation_id,
           COALESCE(t.message_type, '') AS message_type, COALESCE(t.template, '') AS template, t.send_id, t.campaign_id,
           COALESCE(t.differs, '{}') AS differs, COALESCE(t.warnings, '{}') AS warnings
      FROM triggers t
     WHERE t.account_id = :account_id AND
"""
_TRIGGERS = text(
    f"""
    SELECT * FROM (
        ({_TRIGGER} t.email_lower = :email_lower AND t.at BETWEEN :since AND :until
            AND (CAST(:message_type AS text) IS NULL OR t.message_type = :message_type)
          ORDER BY t.at DESC LIMIT :limit)
        UNION
        ({_TRIGGER} t.send_id = ANY(:send_ids) ORDER BY t.id LIMIT :limit)
        UNION
        ({_TRIGGER} t.campaign_id = ANY(:campaign_ids) ORDER BY t.id LIMIT :limit)
    ) AS found
    ORDER BY id
    """
)
_ATTEMPTS = text(
    """
    SELECT send_id, attempt_no, worker_id, provider, outcome, phase, COALESCE(reply, '') AS reply, handed_over_at,
           ended_at
      FROM attempts WHERE account_id = :account_id AND send_id = ANY(:send_ids) ORDER BY send_id, attempt_no
    """
)
_DECISIONS = text(
    """
    SELECT r.send_id, f.id AS set_id, f.change, u.name AS by_name, f.ran_at AS at, f.reason
      FROM frozen_rows r
      JOIN frozen_sets f ON f.account_id = r.account_id AND f.id = r.set_id
      JOIN users u ON u.account_id = f.account_id AND u.id = f.run_by
     WHERE r.account_id = :account_id AND r.send_id = ANY(:send_ids) AND r.outcome = 'moved'
     ORDER BY f.ran_at, f.id
    """
)
_EVENTS = text(
    """
    SELECT e.id, e.received_at AS at, p.name AS endpoint, e.event_id, e.id_source, e.event_type, e.body_sha256,
           e.request_id, e.correlation_id, e.send_id
      FROM inbox_events e
      JOIN inbox_endpoints p ON p.account_id = e.account_id AND p.id = e.endpoint_id
     WHERE e.account_id = :account_id AND e.correlation_id = ANY(:correlation_ids) AND p.reader = 'rules'
     ORDER BY e.id
    """
)
_REDELIVERIES = text(
    """
    SELECT id, event_id AS event_number, received_at AS at, request_id, is_same_body
      FROM inbox_redeliveries WHERE account_id = :account_id AND event_id = ANY(:event_ids) ORDER BY event_id, id
    """
)
_REPORTS = text(
    """
    SELECT id, send_id, COALESCE(happened_at, received_at) AS at, provider, fact, provider_id, words
      FROM provider_events WHERE account_id = :account_id AND send_id = ANY(:send_ids) ORDER BY id
    """
)


def evidence(
    session: Session,
    account_id: int,
    email_lower: str,
    *,
    since: datetime,
    until: datetime,
    message_type: str | None = None,
) -> Evidence:
    """Gives what is on record about the recipient: sends that were made or moved in the window, with all their rows."""

    def rows(statement: Any, made: type, **values: Any) -> list[Any]:
        found = session.execute(statement, {"account_id": account_id, **values})
        return [made(**row._mapping) for row in found]

    window = {"email_lower": email_lower, "since": since, "until": until, "message_type": message_type}
    sends = sorted(rows(_SENDS, Enqueued, limit=SENDS_LIMIT, **window), key=lambda each: each.id)
    send_ids = [each.id for each in sends]
    asked = rows(
        _TRIGGERS,
        Asked,
        send_ids=send_ids,
        campaign_ids=[each.campaign_id for each in sends if each.campaign_id is not None],
        limit=TRIGGERS_LIMIT,
        **window,
    )
    hooks = {each.correlation_id for each in asked if each.source == "webhook"}
    came = rows(_EVENTS, Came, correlation_ids=sorted(hooks)) if hooks else []
    return Evidence(
        recipient=email_lower,
        start=since,
        end=until,
        message_type=message_type or "",
        asked=asked,
        enqueued=sends,
        tried=rows(_ATTEMPTS, Tried, send_ids=send_ids),
        decided=rows(_DECISIONS, Decided, send_ids=send_ids),
        came=came,
        redelivered=rows(_REDELIVERIES, Redelivered, event_ids=[each.id for each in came]) if came else [],
        reported=rows(_REPORTS, Reported, send_ids=send_ids),
    )


_BY_TRIGGER = """
    SELECT t.email_lower, min(t.at) OVER () AS first_at, max(t.at) OVER () AS last_at
      FROM triggers t WHERE t.account_id = :account_id AND t.correlation_id = :id AND t.email_lower IS NOT NULL
     ORDER BY t.id LIMIT 1
"""
_SPAN = "s.email_lower, s.created_at AS first_at, COALESCE(s.finished_at, s.claimed_at, s.created_at) AS last_at"
# Each way to read an id, from the most exact one on.
_WAYS = {
    "key": f"SELECT {_SPAN} FROM sends s WHERE s.account_id = :account_id AND s.dedupe_key = :id AND s.holds_key",
    "past key": f"SELECT {_SPAN} FROM sends s WHERE s.account_id = :account_id AND s.dedupe_key = :id"
    " AND NOT s.holds_key ORDER BY s.id DESC LIMIT 1",
    "correlation id": _BY_TRIGGER,
    "report": f"SELECT {_SPAN} FROM provider_events e JOIN sends s ON s.account_id = e.account_id AND s.id = e.send_id"
    " WHERE e.account_id = :account_id AND e.provider_id = :id ORDER BY e.id LIMIT 1",
    "provider's id": f"SELECT {_SPAN} FROM (SELECT * FROM sends WHERE account_id = :account_id ORDER BY id DESC"
    " LIMIT :scan_rows) AS s WHERE s.provider_id = :id LIMIT 1",
}
_BY_NUMBER = f"SELECT {_SPAN} FROM sends s WHERE s.account_id = :account_id AND s.id = :number"
_BY_MESSAGE_ID = (
    f"SELECT {_SPAN} FROM sends s WHERE s.account_id = :account_id AND s.message_id = :id AND s.campaign_id IS NULL"
)
# A campaign's Message-IDs say which campaign; its sends are walked along their index.
_BY_CAMPAIGNS_MESSAGE_ID = (
    f"SELECT {_SPAN} FROM sends s WHERE s.account_id = :account_id AND s.campaign_id = :number AND s.message_id = :id"
)


def span_of_number(session: Session, account_id: int, number: int) -> Any | None:
    """Gives (email_lower, first_at, last_at) of a send; None when the account has none with this number."""
    return session.execute(text(_BY_NUMBER), {"account_id": account_id, "number": number}).one_or_none()


def span_of_message_id(session: Session, account_id: int, message_id: str, *, campaign_id: int | None) -> Any | None:
    """Gives (email_lower, first_at, last_at) of the send with this Message-ID, brackets and all."""
    statement = _BY_MESSAGE_ID if campaign_id is None else _BY_CAMPAIGNS_MESSAGE_ID
    values = {"account_id": account_id, "id": message_id, "number": campaign_id}
    return session.execute(text(statement), values).first()


def span_of_id(session: Session, account_id: int, id_: str) -> Any | None:
    """Gives (email_lower, first_at, last_at) of the send that a key, a correlation id or a provider's id leads to."""
    for statement in _WAYS.values():
        values = {"account_id": account_id, "id": id_} | ({"scan_rows": SCAN_ROWS} if ":scan_rows" in statement else {})
        found = session.execute(text(statement), values).first()
        if found is not None:
            return found
    return None
