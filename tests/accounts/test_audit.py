"""The audit log: every look-up by a person's address, and everything else that was done, for admins."""

import pytest
import visit
from sqlalchemy import Engine, text

from console.accounts import store
from console.db import transaction


def _entries(office: visit.Office, action: str) -> list[tuple]:
    with transaction(office.engine) as session:
        found = session.execute(
            text("SELECT user_id, object_id, details FROM audit_entries WHERE action = :action ORDER BY id"),
            {"action": action},
        )
        return [tuple(row) for row in found]


def test_who_looked_for_whom_from_where_is_written_down_once_a_search(engine: Engine) -> None:
    office = visit.office(engine)
    office.send(email="rita@example.com", status="sent")
    sue = office.browser("sue")
    sue.get("/sends/?recipient=Rita@Example.com", environ_base={"REMOTE_ADDR": "192.0.2.7"})
    sue.get("/sends/?recipient=nobody")
    sue.get("/sends/?recipient=rita@example.com&by=exact&after=99")
    for plain in ("/sends/", "/sends/?recipient=", "/sends/?recipient=%20"):
        assert sue.get(plain).status_code == 200
    assert _entries(office, "send.search") == [
        (office.users["sue"], "rita@example.com", {"by": "exact", "from": "192.0.2.7", "has_hits": True}),
        (office.users["sue"], "nobody", {"by": "part", "from": "127.0.0.1", "has_hits": False}),
    ]


def test_a_long_search_is_written_down_as_far_as_the_box_takes_it(engine: Engine) -> None:
    office = visit.office(engine)
    assert office.browser("sue").get("/sends/?recipient=" + "x" * 5000).status_code == 200
    [(_, object_id, _)] = _entries(office, "send.search")
    assert object_id == "x" * 320


def test_an_admin_reads_the_log_newest_first_page_by_page(engine: Engine) -> None:
    office = visit.office(engine)
    with transaction(engine) as session:
        for number in range(60):
            details = {"reason": f"<b>because {number}</b>", "roles": ["support", "admin"], "told": True}
            store.record(
                session, office.account_id, user_id=office.users["oda"], action="test.done", object_id=f"thing{number}",
                details=details,
            )  # fmt: skip
    ada = office.browser("ada")
    first = ada.get("/accounts/audit")
    assert "Oda test.done thing59 reason: <b>because 59</b> roles: support, admin told: yes" in visit.words(first)
    assert "<b>because" not in first.get_data(as_text=True)
    shown = visit.words(first)
    assert shown.index("thing59") < shown.index("thing10")
    assert "thing9 " not in shown
    assert "thing9 " in visit.words(ada.get(_next(first)))
    assert ada.get("/accounts/audit?after=x").status_code == 422


def _next(answer) -> str:
    return answer.get_data(as_text=True).partition('rel="next" href="')[2].partition('"')[0]


@pytest.mark.parametrize("name", ["mia", "abe", "sue", "oda"])
def test_nobody_else_reads_it(engine: Engine, name: str) -> None:
    one = visit.office(engine).browser(name)
    assert one.get("/accounts/audit").status_code == 403
    assert "Audit log" not in visit.words(one.get("/"))


def test_another_accounts_entries_are_not_there(engine: Engine) -> None:
    office = visit.office(engine)
    other = visit.office(engine, slug="other", app=office.app)
    with transaction(engine) as session:
        store.record(session, other.account_id, user_id=None, action="test.done", object_id="hidden-thing")
    assert "hidden-thing" not in visit.words(office.browser("ada").get("/accounts/audit"))
    assert "– test.done hidden-thing" in visit.words(other.browser("ada").get("/accounts/audit"))
