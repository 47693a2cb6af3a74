"""Setting a message type."""

import pytest
import visit
from sends.types import TYPE, shop
from sqlalchemy import Engine

PATH = "/sends/edit-message-type/order_receipt"


def test_the_form_shows_how_it_stands_and_saving_it_unchanged_changes_nothing(engine: Engine) -> None:
    office, door = shop(engine)
    door.type(window_s=5400, age_cap_s=900)
    before = door.sql("SELECT * FROM message_types ORDER BY name")
    browser = office.browser("ada")
    page = browser.get(PATH).get_data(as_text=True)
    assert 'value="90m"' in page
    assert 'value="15m"' in page
    assert '<option selected value="receipt">' in page
    shown = {"sender": "Shop <shop@example.com>", "template": "receipt", "lane": "normal", "window": "90m",
             "mode": "enforce", "on_conflict": "refuse", "in_doubt_policy": "hold", "attempt_cap": "12",
             "max_age": "15m", "route": "", "key_pattern": ""}  # fmt: skip
    assert browser.post(PATH, shown).status_code == 303
    assert door.sql("SELECT * FROM message_types ORDER BY name") == before


def test_a_change_goes_for_the_next_message(engine: Engine) -> None:
    office, door = shop(engine)
    first = door.accept()
    answer = office.browser("ada").post(PATH, {**TYPE, "sender": "New <new@example.com>"})
    assert (answer.status_code, answer.location) == (303, "/sends/message-type/order_receipt")
    assert door.accept().decision == "duplicate_observed"
    senders = door.sql("SELECT c.sender FROM sends s JOIN send_contents c ON c.id = s.content_id ORDER BY s.id")
    assert [row.sender for row in senders] == ["Shop <shop@example.com>", "New <new@example.com>"]
    assert first.id == door.sends()[0].id


def test_an_empty_age_is_that_of_the_lane(engine: Engine) -> None:
    office, door = shop(engine)
    office.browser("ada").post(PATH, {**TYPE, "lane": "urgent", "max_age": ""})
    assert door.sql("SELECT age_cap_s FROM message_types WHERE name = 'order_receipt'")[0].age_cap_s == 900


def test_who_saves_a_page_that_is_out_of_date_is_told_and_changes_nothing(engine: Engine) -> None:
    office, door = shop(engine)
    browser = office.browser("ada")
    seen = browser.hidden(PATH)
    door.type(attempt_cap=3)
    answer = browser.client.post(PATH, data={**seen, **TYPE})
    assert answer.status_code == 409
    assert "set by somebody else" in visit.words(answer)
    assert door.sql("SELECT attempt_cap FROM message_types WHERE name = 'order_receipt'")[0].attempt_cap == 3


def test_of_the_campaigns_type_only_what_campaigns_do_not_say_can_be_set(engine: Engine) -> None:
    office, door = shop(engine)
    browser = office.browser("ada")
    path = "/sends/edit-message-type/campaign"
    assert "Key pattern" not in visit.words(browser.get(path))
    assert browser.post(path, {**TYPE, "lane": "urgent"}).status_code == 303
    (row,) = door.sql("SELECT * FROM message_types WHERE name = 'campaign'")
    assert (row.lane, row.template, row.in_doubt_policy, row.attempt_cap, row.age_cap_s) == (
        "bulk", None, "resend", 5, 7200,
    )  # fmt: skip


def test_wrong_input_is_said_beside_its_field(engine: Engine) -> None:
    office, _ = shop(engine)
    answer = office.browser("ada").post(PATH, {**TYPE, "window": "soon"})
    assert answer.status_code == 422
    assert 'id="window-error"' in answer.get_data(as_text=True)


@pytest.mark.parametrize("name", ["mia", "oda", "abe", "sue"])
def test_only_admins_set_types(engine: Engine, name: str) -> None:
    office, _ = shop(engine)
    browser = office.browser(name)
    assert browser.get(PATH).status_code == 403
    assert browser.post(PATH, TYPE, form_at="/sends/message-types").status_code == 403
