"""Configured providers and routes: who may, what is refused, what is kept of a secret."""

from dataclasses import replace
from pathlib import Path

import pytest
import visit
from providers.configure import SECRET_KEY, audit, provider
from sqlalchemy import Engine, text

from console import config
from console.db import transaction
from console.errors import ConfigError, Conflict, Forbidden, InvalidInput, NotFound
from console.providers import service, store
from console.providers.folder import Folder
from console.providers.http_api import HttpProvider
from console.providers.kinds import KINDS
from console.providers.registry import open_provider
from console.providers.service import Draft
from console.providers.ses import Ses
from console.providers.smtp import Smtp
from console.secrets import unseal

SETTINGS = config.load({"SENDONCE_SECRET_KEY": SECRET_KEY})
WANTED = {
    "smtp": {"host": "mail.example.com", "user": "ann"},
    "mailjet": {"api_key": "public"},
    "ses": {"region": "eu-west-1", "access_key": "AKIAEXAMPLE"},
}


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def row_of(office: visit.Office, provider_id: int) -> store.Configured:
    with transaction(office.engine) as session:
        return store.provider_by_id(session, office.account_id, provider_id)


def edit(office: visit.Office, provider_id: int, *, user: str | None = None, **changes: object) -> None:
    given = {"version": 1, "settings": {}, "secret": None, **changes}
    with transaction(office.engine) as session:
        service.edit(
            session,
            office.account_id,
            provider_id,
            user_id=office.users[user] if user else None,
            secret_key=SECRET_KEY,
            **given,  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_is_configured_and_made(office: visit.Office, kind: str, tmp_path: Path) -> None:
    secret = None if kind == "file" else "swordfish-1"
    made = provider(office.engine, office.account_id, kind=kind, settings=WANTED.get(kind), secret=secret)
    row = row_of(office, made)
    adapter = open_provider(replace(SETTINGS, data_dir=tmp_path), row)
    assert isinstance(adapter, {"smtp": Smtp, "ses": Ses, "file": Folder}.get(kind, HttpProvider))
    assert adapter.name == f"{office.account_id}/main"
    assert adapter.capabilities == KINDS[kind].capabilities


def test_without_a_row_it_is_the_installations_own() -> None:
    assert open_provider(SETTINGS, None).name == "smtp"


def test_a_secret_is_sealed_and_stands_nowhere_else(office: visit.Office) -> None:
    made = provider(office.engine, office.account_id)
    assert unseal(SECRET_KEY, row_of(office, made).sealed_secret) == "swordfish-1"
    with transaction(office.engine) as session:
        found = session.execute(
            text(
                "SELECT p::text FROM providers p UNION ALL SELECT e::text FROM audit_entries e"
                " UNION ALL SELECT r::text FROM routes r"
            )
        ).scalars()
        assert not [line for line in found if "swordfish" in line]
    assert "swordfish" not in repr(Draft(name="x", kind="resend", secret="swordfish-1"))


def test_another_secret_key_is_told_when_the_provider_is_made(office: visit.Office) -> None:
    made = provider(office.engine, office.account_id)
    with pytest.raises(ConfigError, match="SENDONCE_SECRET_KEY"):
        open_provider(replace(SETTINGS, secret_key="another key of the installation"), row_of(office, made))


@pytest.mark.parametrize(
    ("draft", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "Main"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "smtp"}, "name"),
        ({"kind": "pigeon"}, "kind"),
        ({"secret": None}, "secret"),
        ({"secret": "two\nlines"}, "secret"),
        ({"secret": "x" * 2001}, "secret"),
        ({"settings": {"colour": "red"}}, "colour"),
        ({"settings": {"timeout_s": "soon"}}, "timeout_s"),
        ({"settings": {"timeout_s": "nan"}}, "timeout_s"),
        ({"settings": {"base_url": "ftp://example.com"}}, "base_url"),
        ({"settings": {"base_url": "https://ann:pw@example.com"}}, "base_url"),
        ({"kind": "smtp"}, "host"),
        ({"kind": "smtp", "settings": {"host": "a b"}}, "host"),
        ({"kind": "smtp", "settings": {"host": "a", "port": "0"}}, "port"),
        ({"kind": "smtp", "settings": {"host": "a", "tls": "perhaps"}}, "tls"),
        ({"kind": "file", "secret": "swordfish"}, "secret"),
        ({"kind": "mailjet"}, "api_key"),
    ],
)
def test_what_is_wrong_is_named(office: visit.Office, draft: dict, field: str) -> None:
    given = {"name": "main", "kind": "resend", "secret": "swordfish-1", **draft}
    with transaction(office.engine) as session, pytest.raises(InvalidInput) as told:
        service.add(session, office.account_id, user_id=None, draft=Draft(**given), secret_key=SECRET_KEY)
    assert told.value.field == field
    assert "swordfish" not in str(told.value)


def test_a_name_is_taken_once_in_an_account(office: visit.Office, engine: Engine) -> None:
    provider(engine, office.account_id)
    with pytest.raises(Conflict):
        provider(engine, office.account_id)
    other = visit.office(engine, slug="other")
    provider(engine, other.account_id)
    with transaction(engine) as session, pytest.raises(NotFound):
        store.provider_by_id(session, other.account_id, store.configured(session, office.account_id)[0].id)


@pytest.mark.parametrize("who", ["mia", "abe", "sue", "oda"])
def test_only_admins_configure(office: visit.Office, who: str) -> None:
    made = provider(office.engine, office.account_id)
    draft = Draft(name="second", kind="file")
    user_id = office.users[who]
    with transaction(office.engine) as session:
        with pytest.raises(Forbidden):
            service.add(session, office.account_id, user_id=user_id, draft=draft, secret_key=SECRET_KEY)
        with pytest.raises(Forbidden):
            service.set_route(session, office.account_id, user_id=user_id, name="default", providers=["main"])
    with pytest.raises(Forbidden):
        edit(office, made, user=who)


def test_an_admin_may_not_set_what_is_for_commands(office: visit.Office) -> None:
    """Else whoever administers one account could have the server call any address and read what it says."""
    draft = Draft(name="x", kind="resend", secret="swordfish-1", settings={"base_url": "http://10.0.0.1"})
    with transaction(office.engine) as session, pytest.raises(InvalidInput) as told:
        service.add(session, office.account_id, user_id=office.users["ada"], draft=draft, secret_key=SECRET_KEY)
    assert told.value.field == "base_url"
    made = provider(office.engine, office.account_id, settings={"base_url": "http://127.0.0.1:9"})
    with pytest.raises(InvalidInput):
        edit(office, made, user="ada", settings={"base_url": "http://10.0.0.1"}, secret="swordfish-2")
    edit(office, made, user="ada", settings={"timeout_s": "5"})
    assert dict(row_of(office, made).settings) == {"base_url": "http://127.0.0.1:9", "timeout_s": "5"}


def test_a_change_keeps_the_secret_unless_a_new_one_is_given(office: visit.Office) -> None:
    made = provider(office.engine, office.account_id)
    edit(office, made, settings={"timeout_s": "5"})
    assert unseal(SECRET_KEY, row_of(office, made).sealed_secret) == "swordfish-1"
    edit(office, made, version=2, secret="swordfish-2")
    row = row_of(office, made)
    assert unseal(SECRET_KEY, row.sealed_secret) == "swordfish-2"
    assert (row.settings["timeout_s"], row.version) == ("5", 3)


@pytest.mark.parametrize("change", [{"host": "evil.example.com"}, {"port": "2525"}, {"tls": "off"}, {"verify": "no"}])
def test_a_kept_secret_is_not_led_to_another_address(office: visit.Office, change: dict[str, str]) -> None:
    made = provider(office.engine, office.account_id, kind="smtp", settings=WANTED["smtp"])
    with pytest.raises(InvalidInput) as told:
        edit(office, made, user="ada", settings=change)
    assert told.value.field == "secret"
    edit(office, made, user="ada", settings=change, secret="swordfish-2")


def test_a_change_of_what_somebody_else_has_changed_is_refused(office: visit.Office) -> None:
    made = provider(office.engine, office.account_id)
    edit(office, made, settings={"timeout_s": "5"})
    with pytest.raises(Conflict):
        edit(office, made, settings={"timeout_s": "6"})
    assert row_of(office, made).settings["timeout_s"] == "5"


def route(office: visit.Office, *providers: str, name: str = "default") -> tuple[str, ...]:
    with transaction(office.engine) as session:
        return service.set_route(session, office.account_id, user_id=None, name=name, providers=providers)


def of_route(office: visit.Office, name: str | None) -> tuple[str, ...]:
    with transaction(office.engine) as session:
        return service.providers_of_route(session, office.account_id, name)


def test_messages_go_by_the_named_route_else_the_default_one_else_our_own_server(office: visit.Office) -> None:
    provider(office.engine, office.account_id)
    assert of_route(office, None) == ("smtp",)
    assert of_route(office, "codes") == ("smtp",)
    route(office, "main", "smtp")
    assert of_route(office, None) == of_route(office, "codes") == ("main", "smtp")
    route(office, "smtp", name="codes")
    assert of_route(office, "codes") == ("smtp",)


@pytest.mark.parametrize("wanted", [(), ("",), ("nobody",), ("main", "main"), ("main", " main ")])
def test_a_route_names_providers_that_there_are_each_once(office: visit.Office, wanted: tuple[str, ...]) -> None:
    provider(office.engine, office.account_id)
    with pytest.raises(InvalidInput) as told:
        route(office, *wanted)
    assert told.value.field == "providers"


def test_a_route_can_not_name_another_accounts_provider(office: visit.Office, engine: Engine) -> None:
    provider(engine, visit.office(engine, slug="other").account_id, name="theirs")
    with pytest.raises(InvalidInput):
        route(office, "theirs")


def test_all_of_it_is_in_the_audit_log(office: visit.Office) -> None:
    made = provider(office.engine, office.account_id)
    edit(office, made, user="ada", settings={"timeout_s": "5"}, secret="swordfish-2")
    route(office, "main")
    route(office, "smtp", "main")
    added, edited, first, second = audit(office)
    assert added[:2] == ("provider.add", str(made))
    assert (added[2]["name"], added[2]["kind"], added[2]["has_secret"]) == ("main", "resend", True)
    assert edited == ("provider.edit", str(made), {"name": "main", "changed": ["timeout_s"], "has_new_secret": True})
    assert first == ("route.set", "default", {"before": [], "after": ["main"]})
    assert second[2] == {"before": ["main"], "after": ["smtp", "main"]}
