"""Coming back to a list that was left by a link."""

import visit
from sqlalchemy import Engine, text

from console.audience import store
from console.audience.unsubscribe import make_token
from console.db import transaction


def _path(office: visit.Office) -> str:
    with transaction(office.engine) as session:
        person = store.subscribers_of(session, office.account_id, "rita@example.com")[0]
    token = make_token(
        office.app.config["SECRET_KEY"],
        account_id=office.account_id, list_id=office.list_id, subscriber_id=person.id, send_id=77,
    )  # fmt: skip
    return f"/audience/unsubscribe/{token}"


def _stops(office: visit.Office) -> list[tuple]:
    with transaction(office.engine) as session:
        return [tuple(row) for row in session.execute(text("SELECT kind, list_id FROM suppressions ORDER BY id"))]


def test_undo_puts_the_person_back_and_the_leaving_stays_on_record(engine: Engine) -> None:
    office = visit.office(engine)
    path, client = _path(office), office.app.test_client()
    assert f'action="{path}/undo"' in client.post(path).get_data(as_text=True)
    answer = client.post(f"{path}/undo")
    assert answer.status_code == 200
    assert "on the list again" in answer.get_data(as_text=True)
    assert _stops(office) == []
    with transaction(engine) as session:
        details = session.execute(
            text("SELECT details FROM audit_entries WHERE action = 'subscriber.come_back'")
        ).scalar_one()
    assert details["send_id"] == 77


def test_undo_undoes_leaving_only(engine: Engine) -> None:
    """C50: a bounce or a complaint stays."""
    office = visit.office(engine)
    path, client = _path(office), office.app.test_client()
    client.post(path)
    with transaction(engine) as session:
        store.suppress(session, office.account_id, email_lower="rita@example.com", kind="bounced", reason="550")
    answer = client.post(f"{path}/undo")
    assert "has been stopped already" in answer.get_data(as_text=True)
    assert _stops(office) == [("bounced", None)]


def test_what_a_colleague_stopped_on_the_list_is_not_undone_by_a_link(engine: Engine) -> None:
    office = visit.office(engine)
    path, client = _path(office), office.app.test_client()
    with transaction(engine) as session:
        store.suppress(
            session, office.account_id, email_lower="rita@example.com", kind="manual", reason="asked",
            list_id=office.list_id,
        )  # fmt: skip
    assert client.post(f"{path}/undo").status_code == 200
    assert _stops(office) == [("manual", office.list_id)]


def test_undo_by_get_changes_nothing(engine: Engine) -> None:
    office = visit.office(engine)
    path, client = _path(office), office.app.test_client()
    client.post(path)
    assert client.get(f"{path}/undo").status_code == 405
    assert _stops(office) == [("unsubscribed", office.list_id)]
