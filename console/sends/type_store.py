"""SQL of message types, and of the contents that their templates give."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.errors import NotFound


@dataclass(frozen=True, kw_only=True)
class TypeRow:
    """A message type as it stands."""

    name: str
    lane: str
    template: str | None
    sender: str | None
    route: str | None = None
    window_s: int | None
    mode: str
    on_conflict: str
    key_pattern: str | None
    in_doubt_policy: str
    attempt_cap: int
    age_cap_s: int


@dataclass(frozen=True, kw_only=True)
class NewContent:
    """Content to be kept, found again by its fingerprint."""

    fingerprint: str
    subject: str
    sender: str
    sender_domain: str
    html: str
    body: str
    template: str
    template_version: int
    required_fields: list[str]


_COLUMNS = (
    "name, lane, template, sender, route, window_s, mode, on_conflict, key_pattern, in_doubt_policy,"
    " attempt_cap, age_cap_s"
)


def show(session: Session, account_id: int, name: str, *, is_held: bool = False) -> TypeRow:
    """Gives one message type; `is_held`: kept as it is until the transaction ends. Raises: NotFound."""
    row = session.execute(
        text(
            f"SELECT {_COLUMNS} FROM message_types WHERE account_id = :account_id AND name = :name"
            + (" FOR UPDATE" if is_held else "")
        ),
        {"account_id": account_id, "name": name},
    ).one_or_none()
    if row is None:
        raise NotFound(f"There is no message type {name!r} in this account.")
    return TypeRow(**row._mapping)


def all_types(session: Session, account_id: int) -> list[TypeRow]:
    """Gives all message types of the account, by name."""
    rows = session.execute(
        text(f"SELECT {_COLUMNS} FROM message_types WHERE account_id = :account_id ORDER BY name"),
        {"account_id": account_id},
    )
    return [TypeRow(**row._mapping) for row in rows]


def with_template(session: Session, account_id: int, template: str, *, is_held: bool = False) -> list[TypeRow]:
    """Gives the types that use a template; `is_held`: kept as they are until the transaction ends."""
    rows = session.execute(
        text(
            f"SELECT {_COLUMNS} FROM message_types WHERE account_id = :account_id AND template = :template"
            " ORDER BY name" + (" FOR UPDATE" if is_held else "")
        ),
        {"account_id": account_id, "template": template},
    )
    return [TypeRow(**row._mapping) for row in rows]


def put(session: Session, account_id: int, row: TypeRow, *, content_id: int | None) -> bool:
    """Makes the type, or sets it to this; gives whether it is new."""
    values: dict[str, Any] = asdict(row) | {"account_id": account_id, "content_id": content_id}
    settings = [name for name in values if name not in ("account_id", "name")]
    return session.execute(
        text(
            f"INSERT INTO message_types (account_id, name, {', '.join(settings)})"
            f" VALUES (:account_id, :name, {', '.join(':' + name for name in settings)})"
            " ON CONFLICT (account_id, name) DO UPDATE"
            f" SET {', '.join(f'{name} = excluded.{name}' for name in settings)}"
            " RETURNING xmax = 0"
        ),
        values,
    ).scalar_one()


def point_to(session: Session, account_id: int, name: str, *, content_id: int) -> None:
    """Lets the type's next messages be made from this content."""
    session.execute(
        text("UPDATE message_types SET content_id = :content_id WHERE account_id = :account_id AND name = :name"),
        {"account_id": account_id, "name": name, "content_id": content_id},
    )


def keep_content(session: Session, account_id: int, content: NewContent) -> int:
    """Gives the number of the row that holds this content, made when there is none."""
    values = asdict(content) | {"account_id": account_id}
    session.execute(
        text(
            """
            INSERT INTO send_contents (account_id, fingerprint, subject, sender, sender_domain, html, text, template,
                                       template_version, required_fields)
            VALUES (:account_id, :fingerprint, :subject, :sender, :sender_domain, :html, :body, :template,
                    :template_version, :required_fields)
                ON CONFLICT (account_id, fingerprint) WHERE NOT is_rendered DO NOTHING
            """
        ),
        values,
    )
    return session.execute(
        text(
            "SELECT id FROM send_contents"
            " WHERE account_id = :account_id AND fingerprint = :fingerprint AND NOT is_rendered"
        ),
        {"account_id": account_id, "fingerprint": content.fingerprint},
    ).scalar_one()
