"""Endpoints: made, changed, closed, with new addresses and changing secrets."""

import post
import pytest
import visit
from sqlalchemy import Engine

from console.db import transaction
from console.errors import Conflict, Forbidden, InvalidInput
from console.inbox import endpoint_store, service
from console.inbox.service import Wanted

OTHER_SECRET = "whsec_" + "b3RoZXItc2VjcmV0LW90aGVyLXNlY3JldC0xMjM0"


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def _edit(office: visit.Office, endpoint_id: int, **wanted: str) -> None:
    with transaction(office.engine) as session:
        service.edit_endpoint(
            session, office.account_id, endpoint_id, user_id=office.users["ada"], wanted=Wanted(**wanted),
            secret_key=post.SETTINGS.secret_key,
        )  # fmt: skip


def _takes(office: visit.Office, made: service.Made, secret: str) -> bool:
    headers = post.signed(b"{}", event_id="msg", secret=secret)
    return post.event(office.app, made, b"{}", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("name", "wanted", "field"),
    [("Shop", {}, "name"), ("", {}, "name"), ("a/b", {}, "name"), ("x" * 64, {}, "name"),
     ("shop", {"scheme": "md5"}, "scheme"), ("shop", {"scheme": "basic"}, "secret"),
     ("shop", {"scheme": "hmac_sha256", "secret": "s"}, "signature_header"),
     ("shop", {"scheme": "hmac_sha256", "secret": "s", "signature_header": "X Y"}, "signature_header"),
     ("shop", {"scheme": "hmac_sha256", "secret": "s", "signature_header": "x", "signature_encoding": "rot"},
      "signature_encoding"),
     ("shop", {"event_id_header": "a\r\nb"}, "event_id_header"), ("shop", {"event_id_path": "$..id"}, "event_id_path"),
     ("shop", {"event_type_path": "$["}, "event_type_path")],
)  # fmt: skip
def test_what_an_endpoint_cannot_be_is_refused_by_its_field(
    office: visit.Office, name: str, wanted: dict, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        post.endpoint(office, name=name, **wanted)
    assert refused.value.field == field


def test_a_name_is_given_once(office: visit.Office) -> None:
    post.endpoint(office)
    with pytest.raises(Conflict, match="already"):
        post.endpoint(office)
    post.endpoint(visit.office(office.engine, slug="other", app=office.app))


def test_while_secrets_change_both_are_good_and_then_the_new_one_alone(office: visit.Office) -> None:
    made = post.endpoint(office, scheme="standard_webhooks", secret=post.WEBHOOK_SECRET)
    assert not _takes(office, made, OTHER_SECRET)
    _edit(office, made.endpoint_id, scheme="standard_webhooks", secret=OTHER_SECRET)
    assert _takes(office, made, post.WEBHOOK_SECRET)
    assert _takes(office, made, OTHER_SECRET)
    _edit(office, made.endpoint_id, scheme="standard_webhooks", event_id_path="")
    assert _takes(office, made, post.WEBHOOK_SECRET)
    with transaction(office.engine) as session:
        service.drop_old_secrets(session, office.account_id, made.endpoint_id, user_id=office.users["ada"])
    assert not _takes(office, made, post.WEBHOOK_SECRET)
    assert _takes(office, made, OTHER_SECRET)


def test_another_scheme_takes_no_secret_along(office: visit.Office) -> None:
    made = post.endpoint(office, scheme="standard_webhooks", secret=post.WEBHOOK_SECRET)
    with pytest.raises(InvalidInput) as refused:
        _edit(office, made.endpoint_id, scheme="basic")
    assert refused.value.field == "secret"
    _edit(office, made.endpoint_id, scheme="basic", secret="shop:pass")
    with transaction(office.engine) as session:
        assert len(endpoint_store.show_endpoint(session, office.account_id, made.endpoint_id).sealed_secrets) == 1
    _edit(office, made.endpoint_id, scheme="none")
    with transaction(office.engine) as session:
        assert endpoint_store.show_endpoint(session, office.account_id, made.endpoint_id).sealed_secrets == []


def test_no_more_secrets_are_kept_than_a_change_takes(office: visit.Office) -> None:
    made = post.endpoint(office, scheme="basic", secret="shop:0")
    for number in range(1, 6):
        _edit(office, made.endpoint_id, scheme="basic", secret=f"shop:{number}")
    with transaction(office.engine) as session:
        endpoint = endpoint_store.show_endpoint(session, office.account_id, made.endpoint_id)
        scheme = service.scheme_of(endpoint, secret_key=post.SETTINGS.secret_key)
    assert list(scheme.secrets) == ["shop:5", "shop:4", "shop:3"]


@pytest.mark.parametrize("name", ["mia", "abe", "sue", "oda"])
def test_only_admins_make_and_change_endpoints(office: visit.Office, name: str) -> None:
    made = post.endpoint(office)
    account_id, user_id = office.account_id, office.users[name]
    with pytest.raises(Forbidden), transaction(office.engine) as session:
        service.add_endpoint(session, account_id, user_id=user_id, name="x", wanted=Wanted(), secret_key="k" * 16)
    with pytest.raises(Forbidden), transaction(office.engine) as session:
        service.renew_token(session, account_id, made.endpoint_id, user_id=user_id)
    with pytest.raises(Forbidden), transaction(office.engine) as session:
        service.open_or_close(session, account_id, made.endpoint_id, user_id=user_id, is_active=False)
    assert post.event(office.app, made, b"{}").status_code == 200
