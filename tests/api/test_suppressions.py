"""Suppressions by the API."""

import programs
import pytest
import visit
from sqlalchemy import Engine, text

from console.audience import store
from console.db import transaction


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


@pytest.fixture
def program(office: visit.Office) -> programs.Program:
    return programs.program(office.engine, office.app, office.account_id)


def _stop(office: visit.Office, email: str, *, kind: str, list_id: int | None = None) -> int:
    with transaction(office.engine) as session:
        store.suppress(session, office.account_id, email_lower=email, kind=kind, reason="x", list_id=list_id)
        return store.suppressions_of(session, office.account_id, email)[-1].id


def test_an_address_is_stopped_once_and_read_again(office: visit.Office, program: programs.Program) -> None:
    added = program.post("/suppressions", {"email": " Ann@Example.com".strip(), "reason": " asked by phone "})
    made = added.get_json()
    assert added.status_code == 201
    assert added.headers["Location"] == f"/api/v1/suppressions/{made['id']}"
    assert (made["email"], made["kind"], made["reason"]) == ("ann@example.com", "manual", "asked by phone")
    assert program.get(f"/suppressions/{made['id']}").get_json() == made
    assert program.get("/suppressions?email=ANN@example.COM").get_json() == {"items": [made], "next": None}
    again = program.post("/suppressions", {"email": "ann@example.com", "reason": "again"})
    assert (again.status_code, again.get_json()) == (200, made)


def test_who_did_it_stands_in_the_audit_log(office: visit.Office, program: programs.Program) -> None:
    made = program.post("/suppressions", {"email": "ann@example.com", "reason": "x"}).get_json()
    program.delete(f"/suppressions/{made['id']}")
    key_id = int(program.key.split("_")[1])
    with office.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT action, object_id, details->>'api_key_id' FROM audit_entries WHERE action LIKE 'subscr%'")
        ).all()
    assert [tuple(row) for row in rows] == [
        ("subscriber.suppress", "ann@example.com", str(key_id)),
        ("subscriber.allow_again", "ann@example.com", str(key_id)),
    ]


@pytest.mark.parametrize("kind", ["manual", "bounced"])
def test_what_a_person_typed_or_a_bounce_left_can_be_removed_once(
    office: visit.Office, program: programs.Program, kind: str
) -> None:
    number = _stop(office, "ann@example.com", kind=kind)
    assert program.delete(f"/suppressions/{number}").status_code == 204
    assert program.get(f"/suppressions/{number}").status_code == 404
    assert program.delete(f"/suppressions/{number}").status_code == 404


@pytest.mark.parametrize("kind", ["unsubscribed", "complained"])
def test_what_the_recipient_decided_stays(office: visit.Office, program: programs.Program, kind: str) -> None:
    number = _stop(office, "ann@example.com", kind=kind, list_id=office.list_id if kind == "unsubscribed" else None)
    answer = program.delete(f"/suppressions/{number}")
    assert answer.status_code == 409
    assert "only they can take that back" in answer.get_json()["detail"]
    assert program.get(f"/suppressions/{number}").status_code == 200


def test_an_address_that_no_mail_can_go_to_is_refused_by_field(program: programs.Program) -> None:
    answer = program.post("/suppressions", {"email": "ann@localhost", "reason": "x"})
    assert (answer.status_code, answer.get_json()["field"]) == (422, "email")


def test_pages_are_read_on_from_the_last_row_whatever_comes_meanwhile(
    office: visit.Office, program: programs.Program
) -> None:
    numbers = [_stop(office, f"p{n}@example.com", kind="manual") for n in range(5)]
    first = program.get("/suppressions?limit=2").get_json()
    _stop(office, "new@example.com", kind="manual")
    second = program.get(f"/suppressions?limit=2&after={first['next']}").get_json()
    third = program.get(f"/suppressions?limit=2&after={second['next']}").get_json()
    seen = [row["id"] for page in (first, second, third) for row in page["items"]]
    assert seen == numbers[::-1]
    assert third["next"] is None


def test_another_accounts_suppressions_are_not_there(office: visit.Office, program: programs.Program) -> None:
    number = _stop(office, "ann@example.com", kind="manual")
    other = visit.office(office.engine, slug="other", app=office.app)
    stranger = programs.program(office.engine, office.app, other.account_id)
    assert stranger.get("/suppressions").get_json()["items"] == []
    assert stranger.get(f"/suppressions/{number}").status_code == 404
    assert stranger.delete(f"/suppressions/{number}").status_code == 404
    assert program.get(f"/suppressions/{number}").status_code == 200


def test_an_address_nobody_can_have_is_on_no_page(program: programs.Program) -> None:
    assert program.get("/suppressions?email=ann@localhost").get_json() == {"items": [], "next": None}
