"""SQL of templates: named, in versions that never change."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.errors import NotFound


@dataclass(frozen=True)
class TemplateRow:
    """A version of a template, as it was written."""

    name: str
    version: int
    subject: str
    html: str
    text: str
    created_at: datetime
    author_name: str | None


def add_version(
    session: Session, account_id: int, *, name: str, subject: str, html: str, body: str, author_id: int | None
) -> int:
    """Adds the next version, and the template when it is the first; gives its number.

    Two at once get two numbers: the template's row is where they queue.
    """
    return session.execute(
        text(
            """
            WITH named AS (
                INSERT INTO templates AS t (account_id, name, version) VALUES (:account_id, :name, 1)
                    ON CONFLICT (account_id, name) DO UPDATE SET version = t.version + 1, updated_at = now()
                RETURNING version
            )
            INSERT INTO template_versions (account_id, name, version, subject, html, text, author_id)
            SELECT :account_id, :name, version, :subject, :html, :body, :author_id FROM named
            RETURNING version
            """
        ),
        {
            "account_id": account_id,
            "name": name,
            "subject": subject,
            "html": html,
            "body": body,
            "author_id": author_id,
        },
    ).scalar_one()


def hold(session: Session, account_id: int, name: str) -> None:
    """Keeps the version in force what it is until the transaction ends; waits for one that is being added."""
    session.execute(
        text("SELECT FROM templates WHERE account_id = :account_id AND name = :name FOR SHARE"),
        {"account_id": account_id, "name": name},
    )


_NEWEST = """
SELECT t.name, v.version, v.subject, v.html, v.text, v.created_at, u.name AS author_name
  FROM templates t
  JOIN template_versions v ON v.account_id = t.account_id AND v.name = t.name AND v.version = t.version
  LEFT JOIN users u ON u.account_id = v.account_id AND u.id = v.author_id
 WHERE t.account_id = :account_id
"""


def newest(session: Session, account_id: int, name: str) -> TemplateRow:
    """Gives the version in force. Raises: NotFound."""
    row = session.execute(text(_NEWEST + " AND t.name = :name"), {"account_id": account_id, "name": name}).one_or_none()
    if row is None:
        raise NotFound(f"There is no template {name!r} in this account.")
    return TemplateRow(**row._mapping)


def all_newest(session: Session, account_id: int) -> list[TemplateRow]:
    """Gives all templates in force, by name."""
    rows = session.execute(text(_NEWEST + " ORDER BY t.name"), {"account_id": account_id})
    return [TemplateRow(**row._mapping) for row in rows]


def versions(session: Session, account_id: int, name: str) -> list[TemplateRow]:
    """Gives the template's versions, the newest first, the last hundred of them. Raises: NotFound."""
    rows = session.execute(
        text(
            """
            SELECT v.name, v.version, v.subject, v.html, v.text, v.created_at, u.name AS author_name
              FROM template_versions v
              LEFT JOIN users u ON u.account_id = v.account_id AND u.id = v.author_id
             WHERE v.account_id = :account_id AND v.name = :name
             ORDER BY v.version DESC LIMIT 100
            """
        ),
        {"account_id": account_id, "name": name},
    ).all()
    if not rows:
        raise NotFound(f"There is no template {name!r} in this account.")
    return [TemplateRow(**row._mapping) for row in rows]
