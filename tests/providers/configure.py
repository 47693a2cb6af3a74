"""An account with its people, and providers configured in it as a command does."""

from collections.abc import Mapping

import visit
from sqlalchemy import Engine, text

from console.db import transaction
from console.providers import service
from console.providers.service import Draft

SECRET_KEY = "test-key-" + "k" * 32


def provider(
    engine: Engine,
    account_id: int,
    *,
    name: str = "main",
    kind: str = "resend",
    secret: str | None = "swordfish-1",
    settings: Mapping[str, str] | None = None,
) -> int:
    """The number of a provider that was added by a command."""
    draft = Draft(name=name, kind=kind, settings=settings or {}, secret=secret)
    with transaction(engine) as session:
        return service.add(session, account_id, user_id=None, draft=draft, secret_key=SECRET_KEY)


def audit(office: visit.Office) -> list[tuple[str, str, dict]]:
    """What the audit log says, in order: action, object, details."""
    with transaction(office.engine) as session:
        rows = session.execute(
            text("SELECT action, object_id, details FROM audit_entries WHERE account_id = :id ORDER BY id"),
            {"id": office.account_id},
        )
        return [
            (row.action, row.object_id, row.details) for row in rows if row.action.startswith(("provider", "route"))
        ]
