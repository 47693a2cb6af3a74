"""Where a provider's reports come in: made, renewed, and told the secret that they are signed with."""

import secrets
from dataclasses import dataclass

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.accounts import store as accounts_store
from console.errors import Conflict, InvalidInput
from console.inbox import endpoint_store, signatures
from console.inbox.report_kinds import REPORTS, Reports
from console.inbox.service import TOKEN_BYTES, hash_of
from console.providers import store as provider_store
from console.providers.kinds import KINDS
from console.providers.store import Configured
from console.secrets import seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A new address: the token is known now, and never again."""

    kind: str
    token: str

    def url(self, base_url: str) -> str:
        return f"{base_url}/inbox/reports/{self.kind}/{self.token}"


def make(session: Session, account_id: int, provider_id: int, *, user_id: int | None) -> Address:
    """Makes the address for a provider's reports, or a new one: the old one is unknown from then on.

    It takes nothing yet where reports are signed with a secret that has to be entered first.
    Takes:  user_id, None for the command line.
    Raises: InvalidInput when the provider reports nothing; Conflict; NotFound; Forbidden.
    """
    row = _provider(session, account_id, provider_id, user_id=user_id)
    kind = _reports(row)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    if row.endpoint_id is None:
        _insert(session, row, kind, token=token, user_id=user_id)
    else:
        endpoint_store.update_endpoint(session, account_id, row.endpoint_id, columns={"token_hash": hash_of(token)})
    _record(session, row, user_id, "provider.reports.address")
    return Address(kind=row.kind, token=token)


def set_secret(
    session: Session, account_id: int, provider_id: int, *, user_id: int | None, secret: str, secret_key: str
) -> None:
    """Says what reports are signed with, or which USER:PASSWORD they bring where nothing is signed.

    Raises: InvalidInput naming secret; Conflict when there is no address yet; NotFound; Forbidden.
    """
    row = _provider(session, account_id, provider_id, user_id=user_id)
    kind = _reports(row)
    if kind.is_amazons:
        raise InvalidInput("Amazon signs with its own key; there is no secret to enter.", field="secret")
    if row.endpoint_id is None:
        raise Conflict(f"{row.name} has no address for reports yet. Make it first.")
    scheme = "basic" if kind.scheme == "none" else kind.scheme
    sealed = seal(secret_key, signatures.check_secret(scheme, secret))
    columns = {"scheme": scheme, "sealed_secrets": [sealed], "is_active": True}
    endpoint_store.update_endpoint(session, account_id, row.endpoint_id, columns=columns)
    _record(session, row, user_id, "provider.reports.secret")


def _insert(session: Session, row: Configured, kind: Reports, *, token: str, user_id: int | None) -> None:
    name = f"reports-{row.name}"[:63]
    columns = {
        "name": name,
        "token_hash": hash_of(token),
        "reader": "reports",
        "scheme": "none",
        # Open to nobody before it can tell whose a report is.
        "is_active": kind.scheme == "none",
        "event_id_header": kind.id_header,
        "event_id_path": kind.id_path,
        "event_type_header": "",
        "event_type_path": kind.type_path,
        "created_by": user_id,
    }
    endpoint_id = endpoint_store.insert_endpoint(session, row.account_id, columns=columns)
    if endpoint_id is None:
        raise Conflict(f"An endpoint of the inbox has the name {name!r} already, which this one needs.")
    if not provider_store.set_endpoint(session, row.account_id, row.id, endpoint_id=endpoint_id):
        raise Conflict(f"Somebody else made the address of {row.name} at the same moment. Look again.")


def _provider(session: Session, account_id: int, provider_id: int, *, user_id: int | None) -> Configured:
    if user_id is not None:
        accounts.acting_user(session, account_id, user_id, doing="configure providers")
    return provider_store.provider_by_id(session, account_id, provider_id)


def _reports(row: Configured) -> Reports:
    kind = REPORTS.get(row.kind)
    if kind is None:
        raise InvalidInput(f"{KINDS[row.kind].label} reports nothing by HTTP.", field="provider")
    return kind


def _record(session: Session, row: Configured, user_id: int | None, action: str) -> None:
    accounts_store.record(
        session, row.account_id, user_id=user_id, action=action, object_id=row.id, details={"name": row.name}
    )
