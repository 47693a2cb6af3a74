"""Writing a template's first version."""

import pytest
import visit
from sends.types import TEMPLATE, shop
from sqlalchemy import Engine

PATH = "/sends/new-template"


def test_a_template_is_kept_as_it_was_written_with_its_author(engine: Engine) -> None:
    office, door = shop(engine)
    answer = office.browser("mia").post(PATH, {**TEMPLATE, "name": "welcome"})
    assert (answer.status_code, answer.location) == (303, "/sends/template/welcome")
    (row,) = door.sql("SELECT * FROM template_versions WHERE name = 'welcome'")
    assert (row.version, row.subject, row.html, row.text) == (1, TEMPLATE["subject"], TEMPLATE["html"], "")
    assert row.author_id == office.users["mia"]
    assert door.sql("SELECT FROM audit_entries WHERE action = 'template.save' AND object_id = 'welcome'")


def test_with_htmx_the_whole_page_moves_on(engine: Engine) -> None:
    office, _ = shop(engine)
    answer = office.browser("mia").post(PATH, {**TEMPLATE, "name": "welcome"}, headers=visit.HTMX)
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/sends/template/welcome")


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"name": ""}, "name", "Give the template a name"),
        ({"name": "A B"}, "name", "is no name"),
        ({"subject": ""}, "subject", "Fill in the subject"),
        ({"html": "<p>\n{{ x"}, "html", "line 2"),
        ({"text": "{% if %}"}, "text", "line 1"),
        ({"html": "{{ unsubscribe_url }}"}, "html", "only campaigns"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_what_was_written_stays(
    engine: Engine, fields: dict, field: str, words: str
) -> None:
    office, door = shop(engine)
    answer = office.browser("mia").post(PATH, {**TEMPLATE, "name": "welcome", **fields})
    page = answer.get_data(as_text=True)
    assert answer.status_code == 422
    assert f'id="{field}-error"' in page
    assert words in visit.words(answer)
    assert "default(&#39;Hello&#39;)" in page or "html" in fields
    assert len(door.sql("SELECT FROM templates")) == 1


def test_a_name_that_is_taken_makes_no_second_version(engine: Engine) -> None:
    office, door = shop(engine)
    answer = office.browser("mia").post(PATH, {**TEMPLATE, "name": "receipt"})
    assert answer.status_code == 409
    assert door.sql("SELECT version FROM templates")[0].version == 1


@pytest.mark.parametrize("name", ["oda", "abe", "sue"])
def test_only_marketers_and_admins_write_templates(engine: Engine, name: str) -> None:
    office, door = shop(engine)
    browser = office.browser(name)
    assert browser.get(PATH).status_code == 403
    assert browser.post(PATH, {**TEMPLATE, "name": "x"}, form_at="/sends/templates").status_code == 403
    assert len(door.sql("SELECT FROM templates")) == 1


def test_a_form_without_its_token_is_refused(engine: Engine) -> None:
    office, _ = shop(engine)
    assert office.browser("mia").client.post(PATH, data={**TEMPLATE, "name": "x"}).status_code == 400
