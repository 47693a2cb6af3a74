"""What every call passes: the key, its scope, its allowance, and the shape of what it sends."""

import json
import logging

import programs
import pytest
import visit
from sqlalchemy import Engine, text
from werkzeug.test import TestResponse

from console.accounts import keys
from console.api import operations
from console.api.operations import OPERATIONS
from console.db import make_engine, transaction

STOP = {"email": "ann@example.com", "reason": "asked by phone"}


def _problem(answer: TestResponse) -> dict:
    assert answer.mimetype == "application/problem+json"
    return json.loads(answer.get_data())


def _path(name: str) -> tuple[str, str]:
    operation = OPERATIONS[name]
    return operation.method, operation.path.replace("{", "").replace("}", "").replace("_id", "").replace("/email", "/1")


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


@pytest.fixture
def program(office: visit.Office) -> programs.Program:
    return programs.program(office.engine, office.app, office.account_id)


def _everything(office: visit.Office, **headers: str) -> dict[str, TestResponse]:
    client = office.app.test_client()
    answers = {}
    for name, operation in OPERATIONS.items():
        path = "/".join("1" if part.startswith("{") else part for part in operation.path.split("/"))
        kwargs = {"json": {}} if operation.body else {}
        answers[name] = client.open(f"/api/v1{path}", method=operation.method, headers=headers, **kwargs)
    return answers


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer so_1_" + "A" * 43, "Bearer nonsense", "so_1_" + "A" * 43],
)
def test_without_a_key_that_works_nothing_is_served(office: visit.Office, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    for name, answer in _everything(office, **headers).items():
        assert answer.status_code == 401, name
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert _problem(answer)["status"] == 401


def test_a_revoked_key_is_refused_from_the_next_call_on(office: visit.Office, program: programs.Program) -> None:
    assert program.get("/campaigns").status_code == 200
    with transaction(office.engine) as session:
        keys.revoke_key(session, office.account_id, int(program.key.split("_")[1]))
    assert program.get("/campaigns").status_code == 401


def test_the_scheme_is_read_in_any_case(office: visit.Office, program: programs.Program) -> None:
    assert program.get("/campaigns", headers={"Authorization": f"bearer {program.key}"}).status_code == 200


def test_a_key_does_only_what_its_scope_says(office: visit.Office) -> None:
    for scope in ("send", "read", "suppress"):
        one = programs.program(office.engine, office.app, office.account_id, scopes=[scope])
        for name, answer in _everything(office, **one.headers).items():
            is_its = OPERATIONS[name].scope == scope
            assert (answer.status_code != 403) == is_its, name
            if not is_its:
                assert f"the scope {OPERATIONS[name].scope}" in _problem(answer)["detail"]


def test_who_is_signed_in_on_the_console_needs_a_key_all_the_same(office: visit.Office) -> None:
    one = office.browser("ada")
    answer = one.client.get("/api/v1/campaigns")
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers
    assert "Cookie" not in answer.headers.get("Vary", "")


def test_a_call_needs_no_form_token(office: visit.Office, program: programs.Program) -> None:
    assert program.post("/suppressions", STOP).status_code == 201
    # And no other address has become open by it.
    assert office.app.test_client().post("/accounts/new-api-key", data={}).status_code == 400


def test_both_ids_are_answered_and_a_given_correlation_id_is_kept(program: programs.Program) -> None:
    answer = program.get("/campaigns/999", headers={"X-Correlation-ID": "order-987"})
    assert answer.headers["X-Correlation-ID"] == "order-987"
    assert _problem(answer)["request_id"] == answer.headers["X-Request-ID"]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[]", "body"),
        (b"null", "body"),
        (b'"x"', "body"),
        (b"\xff\xfe", "body"),
        (b'{"email": "a@example.com", "reason": "x\\u0000"}', "reason"),
        (b'{"email": "a@example.com", "reason": "\\ud800"}', "reason"),
        (b'{"email": "a@example.com", "reason": "x", "reason": "y"}', "reason"),
        (b'{"email": "a@example.com", "reason": "x", "raeson": "y"}', "raeson"),
        (b'{"email": "a@example.com"}', "reason"),
        (b'{"email": 5, "reason": "x"}', "email"),
        (b'{"email": "nobody", "reason": "x"}', "email"),
        (b'{"email": "a@example.com", "reason": " "}', "reason"),
        (b'{"email": "a@example.com", "reason": "' + b"x" * 501 + b'"}', "reason"),
        (b'{"email": "a@example.com", "reason": 1e999}', "reason"),
        (b'{"email": "a@example.com", "reason": ' + b"9" * 5000 + b"}", "body"),
        (b'{"email": "a@example.com", "reason": ' + b"[" * 100_000, "body"),
        (b'{"email": "a@example.com", "reason": ' + b"[" * 40 + b"]" * 40 + b"}", "reason"),
    ],
)
def test_a_body_that_does_not_follow_its_schema_is_refused_by_field(
    program: programs.Program, raw: bytes, field: str
) -> None:
    answer = program.call("POST", "/suppressions", data=raw, content_type="application/json")
    document = _problem(answer)
    if len(raw) > 16 * 1024:
        assert answer.status_code == 413
    else:
        assert (answer.status_code, document["field"]) == (400, field)
        assert document["type"] == "urn:sendonce:problem:malformed"
        assert document["errors"][0]["field"] == field


def test_every_wrong_field_is_told_at_once(program: programs.Program) -> None:
    document = _problem(program.post("/suppressions", {"email": 5, "reasons": "x"}))
    assert {error["field"] for error in document["errors"]} == {"email", "reason", "reasons"}
    told = {error["field"]: error["detail"] for error in document["errors"]}
    assert told["reasons"] == "is unknown; reason is meant?"


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_what_is_no_json_is_refused_by_its_type(program: programs.Program, content_type: str) -> None:
    raw = json.dumps(STOP).encode()
    assert program.call("POST", "/suppressions", data=raw, content_type=content_type).status_code == 415


def test_the_type_may_have_parameters_and_nothing_is_unpacked(program: programs.Program) -> None:
    raw = json.dumps(STOP).encode()
    typed = program.call("POST", "/suppressions", data=raw, content_type="application/json; charset=utf-8")
    assert typed.status_code == 201
    packed = {"data": raw, "content_type": "application/json", "headers": {"Content-Encoding": "gzip"}}
    assert program.call("POST", "/suppressions", **packed).status_code == 415


def test_a_body_over_the_limit_is_refused_with_the_limit(program: programs.Program) -> None:
    answer = program.post("/suppressions", {**STOP, "reason": "x" * 20_000})
    assert answer.status_code == 413
    assert "16 kB" in _problem(answer)["detail"]
    assert program.post("/suppressions", {**STOP, "reason": "x" * 5_000_000}).status_code == 413


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=many", "limit"),
        ("limit=", "limit"),
        ("limit=-1", "limit"),
        ("limit=٣", "limit"),
        ("limit=1&limit=2", "limit"),
        ("after=0", "after"),
        ("after=9223372036854775808", "after"),
        (f"after={'9' * 400}", "after"),
        ("page=2", "page"),
        ("email=%00", "email"),
        ("email=nobody", "email"),
    ],
)
def test_a_parameter_that_does_not_follow_its_schema_is_refused_by_name(
    program: programs.Program, query: str, field: str
) -> None:
    answer = program.get(f"/suppressions?{query}")
    assert (answer.status_code, _problem(answer)["field"]) == (400, field)


def test_what_there_is_not_is_a_problem_document_too(program: programs.Program) -> None:
    assert program.delete(f"/suppressions/{2**63 - 1}").status_code == 404
    assert program.delete(f"/suppressions/{2**63}").status_code == 404
    for path in (
        "/nowhere",
        "/campaigns/0",
        "/campaigns/01",
        "/campaigns/x",
        "/campaigns/99999999999999999999",
        "/campaigns/",
    ):
        answer = program.get(path)
        assert (answer.status_code, _problem(answer)["status"]) == (404, 404), path
    wrong = program.call("PUT", "/suppressions")
    assert wrong.status_code == 405
    assert set(wrong.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert _problem(wrong)["title"] == "Method Not Allowed"


def test_a_fault_of_ours_is_a_problem_document_without_its_words(
    program: programs.Program, monkeypatch: pytest.MonkeyPatch, office: visit.Office
) -> None:
    with office.engine.begin() as connection:
        connection.execute(text("ALTER TABLE suppressions RENAME COLUMN reason TO why"))
    answer = program.client.get("/api/v1/suppressions", headers=program.headers)
    assert (answer.status_code, _problem(answer)["status"]) == (500, 500)
    assert "reason" not in answer.get_data(as_text=True)


def test_without_a_database_a_call_is_told_when_to_come_again() -> None:
    app = visit.site(make_engine("postgresql://nobody@127.0.0.1:1/none"))
    answer = programs.Program(app, "so_1_" + "A" * 43).post("/suppressions", STOP)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert "same dedupe key" in _problem(answer)["detail"]


def test_a_key_appears_in_no_log_and_no_answer(
    office: visit.Office, program: programs.Program, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = program.key.split("_", 2)[2]
    with office.engine.begin() as connection:
        connection.execute(text("ALTER TABLE campaigns RENAME COLUMN note TO remark"))
    answers = list(_everything(office, **program.headers).values())
    answers += list(_everything(office, Authorization=f"Bearer {program.key}x").values())
    answers.append(office.app.test_client().get(f"/api/v1/nowhere?key={program.key}", headers=program.headers))
    assert 500 in {answer.status_code for answer in answers}
    written = capfd.readouterr()
    for told in (*(answer.get_data(as_text=True) + str(answer.headers) for answer in answers), *written, caplog.text):
        assert secret not in told


def test_a_scope_is_named_for_each_operation_that_there_is() -> None:
    assert {operation.scope for operation in operations.OPERATIONS.values()} == {"send", "read", "suppress"}
