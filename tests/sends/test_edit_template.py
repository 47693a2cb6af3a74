"""Writing a template's next version."""

import pytest
import visit
from sends.types import TEMPLATE, shop
from sqlalchemy import Engine

PATH = "/sends/edit-template/receipt"


def test_the_form_shows_the_version_in_force_and_saves_the_next_one(engine: Engine) -> None:
    office, door = shop(engine)
    browser = office.browser("mia")
    assert "Your order {{ order_id }}" in browser.get(PATH).get_data(as_text=True)
    answer = browser.post(PATH, TEMPLATE)
    assert (answer.status_code, answer.location) == (303, "/sends/template/receipt")
    assert "Version 2 of receipt is in force" in visit.words(browser.get("/sends/template/receipt"))
    door.accept()
    subjects = door.sql("SELECT c.subject FROM sends s JOIN send_contents c ON c.id = s.content_id")
    assert [row.subject for row in subjects] == [TEMPLATE["subject"]]


def test_who_saves_a_page_that_is_out_of_date_is_told_and_loses_no_others_work(engine: Engine) -> None:
    office, door = shop(engine)
    browser = office.browser("mia")
    seen = browser.hidden(PATH)
    door.template(subject="By somebody else")
    answer = browser.client.post(PATH, data={**seen, **TEMPLATE})
    assert answer.status_code == 409
    assert "version 2 by now" in visit.words(answer)
    assert [row.version for row in door.sql("SELECT version FROM template_versions ORDER BY version")] == [1, 2]


def test_wrong_input_is_said_beside_its_field(engine: Engine) -> None:
    office, door = shop(engine)
    answer = office.browser("mia").post(PATH, {**TEMPLATE, "html": "{{"})
    assert answer.status_code == 422
    assert 'id="html-error"' in answer.get_data(as_text=True)
    assert door.sql("SELECT version FROM templates")[0].version == 1


@pytest.mark.parametrize("name", ["oda", "abe", "sue"])
def test_only_marketers_and_admins_write_templates(engine: Engine, name: str) -> None:
    office, _ = shop(engine)
    browser = office.browser(name)
    assert browser.get(PATH).status_code == 403
    assert browser.post(PATH, TEMPLATE, form_at="/sends/templates").status_code == 403
