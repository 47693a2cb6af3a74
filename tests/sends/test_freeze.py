"""The buttons of both lists and of one send: they fix a set and lead to the page that shows it; nothing moves."""

import pytest
import visit
from settling import dead, doubtful, sql, states
from sqlalchemy import Engine


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def _rows(office: visit.Office, location: str) -> set[int]:
    set_id = int(location.rsplit("/", 1)[1])
    return {row[0] for row in sql(office, "SELECT send_id FROM frozen_rows WHERE set_id = :id", id=set_id)}


def test_the_ticked_ones_are_frozen_and_nothing_moves(office: visit.Office) -> None:
    one, two, three = (dead(office, email=f"r{n}@example.com") for n in range(3))
    browser = office.browser("oda")
    token = browser.hidden("/sends/dead-letters")["csrf_token"]
    fields = {"csrf_token": token, "change": "revive", "send_id": [str(one), str(three)]}
    answer = browser.client.post("/sends/freeze", data=fields)
    assert answer.status_code == 303
    assert answer.location.startswith("/sends/frozen/")
    assert _rows(office, answer.location) == {one, three}
    assert states(office) == dict.fromkeys((one, two, three), "dead")


def test_the_whole_list_is_frozen_as_its_filters_have_it(office: visit.Office) -> None:
    campaign_id = office.campaign("sending")
    doubtful(office, None, email="elsewhere@example.com")
    wanted = doubtful(office, campaign_id)
    doubtful(office, campaign_id, error_class="no-answer-recovery", email="b@example.com")
    browser = office.browser("oda")
    path = f"/sends/in-doubt?class=no-answer-end&campaign={campaign_id}"
    answer = browser.post("/sends/freeze", {"change": "settle_sent"}, form_at=path)
    assert answer.status_code == 303
    assert _rows(office, answer.location) == {wanted}


def test_htmx_is_led_there_as_a_whole(office: visit.Office) -> None:
    send_id = dead(office)
    answer = office.browser("oda").post(
        "/sends/freeze", {"change": "revive", "send_id": send_id, "whole": ""}, form_at="/sends/dead-letters",
        headers=visit.HTMX,
    )  # fmt: skip
    assert answer.status_code == 204
    assert _rows(office, answer.headers["HX-Redirect"]) == {send_id}


def test_one_sends_page_has_the_same_buttons_for_operators(office: visit.Office) -> None:
    for send_id, changes in (
        (dead(office), ["revive"]),
        (doubtful(office, email="b@example.com"), ["settle_sent", "settle_resend", "settle_failed"]),
        (office.send(status="failed", email="c@example.com"), []),
        (office.send(status="queued", email="d@example.com"), []),
    ):
        page = office.browser("oda").get(f"/sends/{send_id}").get_data(as_text=True)
        assert [c for c in ("revive", "settle_sent", "settle_resend", "settle_failed") if f'value="{c}"' in page] == [
            *changes
        ]
        assert 'name="change"' not in office.browser("sue").get(f"/sends/{send_id}").get_data(as_text=True)
        if changes:
            answer = office.browser("oda").post("/sends/freeze", {"change": changes[0]}, form_at=f"/sends/{send_id}")
            assert _rows(office, answer.location) == {send_id}


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"change": "revive"}, 422, "Choose at least one message."),
        ({"change": "revive", "send_id": "x"}, 422, "is no row's number"),
        ({"change": "revive", "send_id": "9" * 5000}, 422, "is no row's number"),
        ({"change": "revive", "send_id": "99"}, 404, "There is no send 99 in this account"),
        ({"change": "revive", "whole": "1", "class": "no-such-class"}, 422, "There is no such message any more."),
        ({"change": "cancel", "send_id": "1"}, 422, "'cancel' is nothing that can be done."),
        ({}, 422, "is nothing that can be done"),
    ],
)
@pytest.mark.parametrize("headers", [{}, visit.HTMX], ids=["plain", "htmx"])
def test_wrong_input_is_refused_with_words_and_freezes_nothing(
    office: visit.Office, fields: dict[str, str], status: int, words: str, headers: dict[str, str]
) -> None:
    dead(office)
    browser = office.browser("oda")
    token = browser.hidden("/")["csrf_token"]
    answer = browser.client.post("/sends/freeze", data={"csrf_token": token, **fields}, headers=headers)
    assert answer.status_code == status
    assert words in visit.words(answer)
    assert sql(office, "SELECT FROM frozen_sets") == []


def test_other_roles_and_other_accounts_freeze_nothing(office: visit.Office) -> None:
    send_id = dead(office)
    other = visit.office(office.engine, slug="other", app=office.app)
    for browser, status in ((office.browser("sue"), 403), (office.browser("mia"), 403), (other.browser("ada"), 404)):
        answer = browser.post("/sends/freeze", {"change": "revive", "send_id": send_id}, form_at="/")
        assert answer.status_code == status
    assert sql(office, "SELECT FROM frozen_sets") == []
