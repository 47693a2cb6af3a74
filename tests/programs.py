"""A program that calls the API with a key, and holds every answer against the API's document."""

import re
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
from flask import Flask
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from console.accounts import keys
from console.accounts.models import SCOPES
from console.api.document import PREFIX, document
from console.db import transaction

_VALIDATORS: dict[str, jsonschema_rs.Validator] = {}


@dataclass
class Program:
    """Calls one application with one key."""

    app: Flask
    key: str
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = self.app.test_client()
        self.headers = {"Authorization": f"Bearer {self.key}"} | self.headers

    def get(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("GET", path, **kwargs)

    def post(self, path: str, body: Any = None, **kwargs: Any) -> TestResponse:
        return self.call("POST", path, **({} if body is None else {"json": body}), **kwargs)

    def delete(self, path: str) -> TestResponse:
        return self.call("DELETE", path)

    def call(self, method: str, path: str, *, headers: dict[str, str] | None = None, **kwargs: Any) -> TestResponse:
        answer = self.client.open(PREFIX + path, method=method, headers=self.headers | (headers or {}), **kwargs)
        hold_against_document(method, path.partition("?")[0], answer)
        return answer


def program(engine: Engine, app: Flask, account_id: int, *, scopes: Any = SCOPES, **columns: Any) -> Program:
    """A program with a new key of the account, for all that there is unless `scopes` says otherwise."""
    with transaction(engine) as session:
        return Program(app, keys.add_key(session, account_id, scopes=scopes, **columns).text)


def hold_against_document(method: str, path: str, answer: TestResponse) -> None:
    """Fails unless the document says that this operation may give this answer."""
    operation = _operation(method, path)
    if operation is None:
        assert answer.status_code in {404, 405}, answer.get_data(as_text=True)
        return
    said = operation["responses"].get(str(answer.status_code))
    assert said, f"{method} {path} gave {answer.status_code}: {answer.get_data(as_text=True)}"
    for name, header in said["headers"].items():
        assert name in answer.headers or not header["required"], (name, answer.headers)
    assert "Set-Cookie" not in answer.headers
    if "content" not in said:
        assert answer.get_data() == b""
        return
    ((media_type, content),) = said["content"].items()
    assert answer.mimetype == media_type
    _validator(content["schema"]["$ref"]).validate(answer.get_json())


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for pattern, methods in document()["paths"].items():
        if re.fullmatch(re.sub(r"{\w+}", r"[1-9][0-9]{0,18}", pattern), path):
            return methods.get(method.lower())
    return None


def _validator(reference: str) -> jsonschema_rs.Validator:
    if reference not in _VALIDATORS:
        schema = {"$ref": reference, "components": document()["components"]}
        _VALIDATORS[reference] = jsonschema_rs.validator_for(schema, validate_formats=True)
    return _VALIDATORS[reference]
