"""The web application on a test's database, and a browser of it that signs in."""

import html
import re
from dataclasses import dataclass, replace
from typing import Any

import make
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, update
from werkzeug.test import TestResponse

from console import clock, config
from console.app import create_app
from console.campaigns import service, store
from console.campaigns.models import Campaign
from console.campaigns.store import CampaignRow
from console.db import transaction

HTMX = {"HX-Request": "true"}


def site(engine: Engine, **changes: Any) -> Flask:
    """The web application; `changes` are settings by their field names."""
    settings = config.load({"SENDONCE_SECRET_KEY": make.SECRET_KEY, "SENDONCE_BASE_URL": "http://localhost"})
    return create_app(replace(settings, **changes), engine)


class Browser:
    """Reads pages and sends their forms, tokens and all, as a browser without scripts does."""

    def __init__(self, app: Flask):
        self.client: FlaskClient = app.test_client()

    def get(self, path: str, **kwargs: Any) -> TestResponse:
        return self.client.get(path, **kwargs)

    def post(
        self, path: str, fields: dict[str, Any] | None = None, *, form_at: str | None = None, **kwargs: Any
    ) -> TestResponse:
        """Sends a form with the token (and the other hidden fields) of the page at `form_at`, the same path if None."""
        return self.client.post(path, data={**self.hidden(form_at or path), **(fields or {})}, **kwargs)

    def hidden(self, path: str) -> dict[str, str]:
        """Gives the hidden fields of a page's forms, by name."""
        fields = {}
        for tag in re.findall(r"<input[^>]*>", self.client.get(path).get_data(as_text=True)):
            if 'type="hidden"' in tag and (name := re.search(r'name="([^"]*)"', tag)):
                value = re.search(r'value="([^"]*)"', tag)
                fields[name[1]] = value[1] if value else ""
        return fields

    def sign_in(
        self,
        *,
        account: str = "acme",
        email: str = "mia@example.com",
        password: str = make.PASSWORD,
        path: str = "/accounts/sign-in",
        **kwargs: Any,
    ) -> TestResponse:
        return self.post(path, {"account": account, "email": email, "password": password}, **kwargs)


def browser(app: Flask, *, account: str = "acme", email: str = "mia@example.com") -> Browser:
    """A browser that is signed in."""
    one = Browser(app)
    answer = one.sign_in(account=account, email=email)
    assert answer.status_code == 303, answer.get_data(as_text=True)
    return one


PEOPLE = {
    "mia": ("marketer",),
    "max": ("marketer",),
    "abe": ("approver",),
    "sue": ("support",),
    "oda": ("operator",),
    "ada": ("admin",),
}


@dataclass(frozen=True)
class Office:
    """An account with a person for each role and a list of two, seen through the web application."""

    app: Flask
    engine: Engine
    account_id: int
    list_id: int
    users: dict[str, int]
    slug: str

    def browser(self, name: str) -> Browser:
        """A browser in which this person is signed in."""
        return browser(self.app, account=self.slug, email=f"{name}@example.com")

    def campaign(self, status: str = "draft", *, author: str = "mia", **columns: Any) -> int:
        """The id of a campaign that has come to `status` by the ways that there are."""
        draft = service.Draft(
            name=columns.pop("name", "Spring news"),
            list_id=self.list_id,
            subject="News for {{ first_name }}",
            sender="Acme <news@example.com>",
            html="<p>Hello <b>{{ first_name }}</b></p>",
        )
        with transaction(self.engine) as session:
            made = service.create(session, self.account_id, author_id=self.users[author], draft=draft)
            if status not in ("draft", "cancelled"):
                service.submit(session, self.account_id, made, user_id=self.users[author])
            if status in ("approved", "sending", "paused", "sent"):
                service.approve(session, self.account_id, made, user_id=self.users["abe"])
            if status == "cancelled":
                service.cancel(session, self.account_id, made, user_id=self.users[author])
            if status in ("sending", "paused", "sent"):
                columns = {"started_at": clock.now(), "audience_built_at": clock.now(), "status": status, **columns}
            if columns:
                session.execute(update(Campaign).where(Campaign.id == made).values(**columns))
        return made

    def send(self, **columns: Any) -> int:
        """The id of a row of the ledger, as make.send."""
        with transaction(self.engine) as session:
            return make.send(session, self.account_id, **columns)

    def row(self, campaign_id: int) -> CampaignRow:
        """The campaign as it stands in the database."""
        with transaction(self.engine) as session:
            return store.show(session, self.account_id, campaign_id)


def office(engine: Engine, *, slug: str = "acme", app: Flask | None = None, **changes: Any) -> Office:
    """An account to visit; `changes` are settings of the web application."""
    with transaction(engine) as session:
        account_id = make.account(session, slug)
        users = {
            name: make.user(session, account_id, email=f"{name}@example.com", roles=roles)
            for name, roles in PEOPLE.items()
        }
        list_id = make.mailing_list(session, account_id, emails=["rita@example.com", "rob@example.com"])
    return Office(app or site(engine, **changes), engine, account_id, list_id, users, slug)


def words(answer: TestResponse) -> str:
    """The page as people read it: without tags, blanks drawn together."""
    plain = re.sub(r"<(script|style)[^>]*>.*?</\1>|<[^>]+>", " ", answer.get_data(as_text=True), flags=re.DOTALL)
    return re.sub(r" ([,.:;)])", r"\1", " ".join(html.unescape(plain).replace("\xa0", " ").split()))
