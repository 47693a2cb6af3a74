"""Rules of configured providers and routes: who may, which settings, what of a secret is kept. SQL is in store.py."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.accounts import store as accounts_store
from console.errors import Conflict, InvalidInput
from console.providers import store
from console.providers.kinds import KINDS, Kind, checked_values
from console.providers.registry import OWN
from console.providers.store import DEFAULT_ROUTE, Configured
from console.secrets import seal

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
SECRET_CHARS_LIMIT = 2_000
ROUTE_LIMIT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a person wants a provider to be; `secret` None or empty: the one that is there already."""

    name: str
    kind: str
    settings: Mapping[str, str] = field(default_factory=dict)
    secret: str | None = field(default=None, repr=False)


def add(session: Session, account_id: int, *, user_id: int | None, draft: Draft, secret_key: str) -> int:
    """Adds a provider; gives its number. Takes: user_id, None for the command line.

    Raises: InvalidInput naming name, kind, secret or the setting; Conflict when the name is taken; Forbidden.
    """
    _require_admin(session, account_id, user_id)
    kind = _kind(draft.kind)
    name = _name(draft.name, field="name")
    if name == OWN:
        raise InvalidInput(f"{OWN} is the installation's own server; choose another name.", field="name")
    values = checked_values(kind, draft.settings, is_command=user_id is None)
    columns = {
        "name": name,
        "kind": draft.kind,
        "settings": values,
        "sealed_secret": _sealed(kind, draft.secret, secret_key=secret_key),
        "changed_by": user_id,
    }
    provider_id = store.insert_provider(session, account_id, columns=columns)
    if provider_id is None:
        raise Conflict(f"There is already a provider {name!r}; choose another name, or change that one.")
    details = {"name": name, "kind": draft.kind, "settings": values, "has_secret": bool(columns["sealed_secret"])}
    accounts_store.record(
        session, account_id, user_id=user_id, action="provider.add", object_id=provider_id, details=details
    )
    return provider_id


def edit(
    session: Session,
    account_id: int,
    provider_id: int,
    *,
    user_id: int | None,
    version: int,
    settings: Mapping[str, str],
    secret: str | None,
    secret_key: str,
) -> None:
    """Changes a provider's settings, and its secret when one is given.

    Takes:  version, as it was shown to whoever changes it; settings, those that are named, the others stay.
    Raises: InvalidInput naming secret or the setting; Conflict when it was changed meanwhile; NotFound; Forbidden.
    """
    _require_admin(session, account_id, user_id)
    row = store.provider_by_id(session, account_id, provider_id)
    kind = _kind(row.kind)
    values = _changed(row, kind, settings, is_command=user_id is None)
    names = sorted(name for name in {*values, *row.settings} if values.get(name) != row.settings.get(name))
    columns = {"settings": values, "changed_by": user_id}
    if secret:
        columns["sealed_secret"] = _sealed(kind, secret, secret_key=secret_key)
    elif row.sealed_secret:
        _refuse_leading_astray(kind, names)
    if not store.update_provider(session, account_id, provider_id=provider_id, version=version, columns=columns):
        raise Conflict(f"The provider {row.name!r} was changed since you opened it. Open it again, and look first.")
    details = {"name": row.name, "changed": names, "has_new_secret": bool(secret)}
    accounts_store.record(
        session, account_id, user_id=user_id, action="provider.edit", object_id=provider_id, details=details
    )


def set_route(
    session: Session, account_id: int, *, user_id: int | None, name: str, providers: Sequence[str]
) -> tuple[str, ...]:
    """Makes a route, or changes it; gives its providers.

    Raises: InvalidInput naming name or providers; Forbidden.
    """
    _require_admin(session, account_id, user_id)
    route = _name(name or DEFAULT_ROUTE, field="name")
    wanted = tuple(each.strip() for each in providers if each.strip())
    known = {OWN, *(row.name for row in store.configured(session, account_id))}
    if not wanted or len(wanted) > ROUTE_LIMIT or len(set(wanted)) < len(wanted):
        raise InvalidInput(f"Name 1 to {ROUTE_LIMIT} providers, each once.", field="providers")
    for each in wanted:
        if each not in known:
            raise InvalidInput(
                f"There is no provider {each[:80]!r}; there are {', '.join(sorted(known))}.", field="providers"
            )
    before = store.route(session, account_id, route)
    store.put_route(session, account_id, name=route, providers=wanted, changed_by=user_id)
    details = {"before": list(before or ()), "after": list(wanted)}
    accounts_store.record(session, account_id, user_id=user_id, action="route.set", object_id=route, details=details)
    return wanted


def providers_of_route(session: Session, account_id: int, name: str | None) -> tuple[str, ...]:
    """Gives the names of the providers that a message of this route may go by, the first choice first.

    A route that there is not (any more) means the default one, and without that the installation's own server.
    """
    found = store.route(session, account_id, name)
    if found is None and name is not None:
        found = store.route(session, account_id, None)
    return found or (OWN,)


def _require_admin(session: Session, account_id: int, user_id: int | None) -> None:
    if user_id is not None:
        accounts.acting_user(session, account_id, user_id, doing="configure providers")


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise InvalidInput(f"{name[:40]!r} is no kind of provider; there are {', '.join(KINDS)}.", field="kind")
    return KINDS[name]


def _name(text: str, *, field: str) -> str:
    name = text.strip()
    if not _NAME.fullmatch(name):
        raise InvalidInput("A name has 1 to 63 of the characters a-z, 0-9, - and _.", field=field)
    return name


def _changed(row: Configured, kind: Kind, given: Mapping[str, str], *, is_command: bool) -> dict[str, str]:
    """Gives all settings with the changes; what a person may not change stays as it is."""
    values = checked_values(kind, {**row.settings, **given}, is_command=True)
    if not is_command:
        checked_values(kind, {**_for_people(kind, row.settings), **given}, is_command=False)
    return values


def _for_people(kind: Kind, values: Mapping[str, str]) -> dict[str, str]:
    hidden = {each.name for each in kind.settings if each.is_for_commands}
    return {name: value for name, value in values.items() if name not in hidden}


def _refuse_leading_astray(kind: Kind, changed_names: Sequence[str]) -> None:
    """A secret that nobody may read would be sent to wherever it is told."""
    for setting in kind.settings:
        if setting.guards_secret and setting.name in changed_names:
            raise InvalidInput(
                f"{setting.label} decides who is sent the secret ({kind.secret_label}): enter that again with it.",
                field="secret",
            )


def _sealed(kind: Kind, secret: str | None, *, secret_key: str) -> str:
    text = (secret or "").strip()
    if not kind.secret_label:
        if text:
            raise InvalidInput(f"{kind.label} takes no secret.", field="secret")
        return ""
    if not text and not kind.is_secret_optional:
        raise InvalidInput(f"Enter the {kind.secret_label}.", field="secret")
    if len(text) > SECRET_CHARS_LIMIT or not text.isprintable() or not text.isascii():
        raise InvalidInput(
            f"The {kind.secret_label} has up to {SECRET_CHARS_LIMIT} ASCII characters on one line.", field="secret"
        )
    return seal(secret_key, text) if text else ""
