"""The web application on a test's database, and a browser of it that signs in."""

import re
from dataclasses import replace
from typing import Any

import make
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from console import config
from console.app import create_app

HTMX = {"HX-Request": "true"}


def site(engine: Engine, **changes: Any) -> Flask:
    """The web application; `changes` are settings by their field names."""
    settings = config.load({"SENDONCE_SECRET_KEY": "test-key-" + "k" * 32, "SENDONCE_BASE_URL": "http://localhost"})
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
