"""SQL of configured providers and routes. Rules are in service.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from console.errors import NotFound
from console.providers.models import ConfiguredProvider, Route

DEFAULT_ROUTE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A provider as it is configured; its secret is sealed."""

    account_id: int
    id: int
    name: str
    kind: str
    settings: Mapping[str, str]
    sealed_secret: str
    version: int
    changed_at: datetime
    endpoint_id: int | None = None  # where its reports come in; not read by the processes that send

    @property
    def full_name(self) -> str:
        """The name that is one in the whole installation: of its breaker, its pace, its attempts."""
        return f"{self.account_id}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    """A route: `providers` by name, the first choice first."""

    name: str
    providers: tuple[str, ...]
    changed_at: datetime


def configured(session: Session, account_id: int) -> list[Configured]:
    """Gives the account's providers by name."""
    rows = session.scalars(
        select(ConfiguredProvider).where(ConfiguredProvider.account_id == account_id).order_by(ConfiguredProvider.name)
    )
    return [_configured(row) for row in rows]


def all_configured(session: Session) -> list[Configured]:
    """Gives the providers of all accounts, for the processes that send."""
    rows = session.scalars(select(ConfiguredProvider).order_by(ConfiguredProvider.account_id, ConfiguredProvider.name))
    return [_configured(row) for row in rows]


def provider_by_id(session: Session, account_id: int, provider_id: int) -> Configured:
    """Gives one provider.

    Raises: NotFound.
    """
    row = session.get(ConfiguredProvider, (account_id, provider_id))
    if row is None:
        raise NotFound("There is no such provider. Go back to the list of providers.")
    return _configured(row)


def provider_by_name(session: Session, account_id: int, name: str) -> Configured:
    """Gives one provider.

    Raises: NotFound.
    """
    row = session.scalars(
        select(ConfiguredProvider).where(ConfiguredProvider.account_id == account_id, ConfiguredProvider.name == name)
    ).one_or_none()
    if row is None:
        raise NotFound(f"There is no provider {name!r} in this account. See them with: sendonce provider list")
    return _configured(row)


def provider_by_endpoint(session: Session, account_id: int, endpoint_id: int) -> Configured | None:
    """Gives the provider whose reports come in at an endpoint of the inbox; None when there is none."""
    row = session.scalars(
        select(ConfiguredProvider).where(
            ConfiguredProvider.account_id == account_id, ConfiguredProvider.endpoint_id == endpoint_id
        )
    ).one_or_none()
    return None if row is None else _configured(row)


def set_endpoint(session: Session, account_id: int, provider_id: int, *, endpoint_id: int) -> bool:
    """Says where a provider's reports come in; gives False when it has a place already."""
    found = session.scalars(
        update(ConfiguredProvider)
        .where(
            ConfiguredProvider.account_id == account_id,
            ConfiguredProvider.id == provider_id,
            ConfiguredProvider.endpoint_id.is_(None),
        )
        .values(endpoint_id=endpoint_id)
        .returning(ConfiguredProvider.id)
    ).one_or_none()
    return found is not None


def insert_provider(session: Session, account_id: int, *, columns: Mapping[str, Any]) -> int | None:
    """Adds a provider and gives its number; None when the name is taken."""
    statement = upsert(ConfiguredProvider).values(account_id=account_id, **columns)
    return session.scalars(statement.on_conflict_do_nothing().returning(ConfiguredProvider.id)).one_or_none()


def update_provider(
    session: Session, account_id: int, *, provider_id: int, version: int, columns: Mapping[str, Any]
) -> bool:
    """Changes a provider, if it still is at `version`; gives whether it was."""
    changed = session.scalars(
        update(ConfiguredProvider)
        .where(
            ConfiguredProvider.account_id == account_id,
            ConfiguredProvider.id == provider_id,
            ConfiguredProvider.version == version,
        )
        .values(version=ConfiguredProvider.version + 1, changed_at=func.now(), **columns)
        .returning(ConfiguredProvider.id)
    ).one_or_none()
    return changed is not None


def routes(session: Session, account_id: int) -> list[RouteRow]:
    """Gives the account's routes by name."""
    rows = session.scalars(select(Route).where(Route.account_id == account_id).order_by(Route.name))
    return [RouteRow(name=row.name, providers=tuple(row.providers), changed_at=row.changed_at) for row in rows]


def route(session: Session, account_id: int, name: str | None) -> tuple[str, ...] | None:
    """Gives the names of a route's providers, the first choice first; None when there is no such route.

    Takes: name, None for the account's default.
    """
    found = session.scalars(
        select(Route.providers).where(Route.account_id == account_id, Route.name == (name or DEFAULT_ROUTE))
    ).one_or_none()
    return tuple(found) if found is not None else None


def put_route(
    session: Session, account_id: int, *, name: str, providers: Sequence[str], changed_by: int | None
) -> None:
    """Makes a route, or changes it."""
    columns = {"providers": list(providers), "changed_by": changed_by, "changed_at": func.now()}
    statement = upsert(Route).values(account_id=account_id, name=name, **columns)
    session.execute(statement.on_conflict_do_update(index_elements=["account_id", "name"], set_=columns))


def _configured(row: ConfiguredProvider) -> Configured:
    return Configured(
        account_id=row.account_id,
        id=row.id,
        name=row.name,
        kind=row.kind,
        settings=row.settings,
        sealed_secret=row.sealed_secret,
        version=row.version,
        changed_at=row.changed_at,
        endpoint_id=row.endpoint_id,
    )
