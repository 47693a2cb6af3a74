"""Writing a campaign."""

import visit
from sqlalchemy import Engine


def _fields(office: visit.Office, **changes: str) -> dict[str, str]:
    fields = {
        "name": "Spring news",
        "list_id": str(office.list_id),
        "sender": "Acme <news@example.com>",
        "subject": "Hello {{ first_name | default('there') }}",
        "html": "<p>Hello</p>",
        "text": "",
    }
    return fields | changes


def test_a_new_campaign_is_a_draft_with_its_text_made_from_the_html(engine: Engine) -> None:
    office = visit.office(engine)
    one = office.browser("mia")
    answer = one.post("/campaigns/new", _fields(office, name="  Spring news  "))
    assert answer.status_code == 303
    campaign = office.row(int(answer.location.rsplit("/", 1)[1]))
    assert (campaign.name, campaign.status, campaign.author_name) == ("Spring news", "draft", "Mia")
    assert "Hello" in campaign.text
    assert one.get(answer.location).status_code == 200


def test_with_htmx_the_browser_is_led_to_the_new_campaign(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("mia").post("/campaigns/new", _fields(office), headers=visit.HTMX)
    assert answer.status_code == 204
    assert answer.headers["HX-Redirect"].startswith("/campaigns/")


def test_what_is_wrong_is_said_beside_its_field_and_nothing_typed_is_lost(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("mia").post(
        "/campaigns/new", _fields(office, name="", html="<p>{{ first_name </p>", sender="nobody")
    )
    assert answer.status_code == 422
    assert "Give the campaign a name." in visit.words(answer)
    assert "{{ first_name &lt;/p&gt;" in answer.get_data(as_text=True)


def test_a_template_that_does_not_compile_is_refused_with_its_line(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("mia").post("/campaigns/new", _fields(office, html="<p>\n{{ first_name </p>"))
    assert answer.status_code == 422
    page = answer.get_data(as_text=True)
    assert 'id="html-error"' in page
    assert "line 2" in visit.words(answer)


def test_a_sender_that_is_no_address_is_refused_beside_its_field(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("mia").post("/campaigns/new", _fields(office, sender="nobody"))
    assert answer.status_code == 422
    assert 'id="sender-error"' in answer.get_data(as_text=True)


def test_the_list_of_another_account_can_not_be_chosen(engine: Engine) -> None:
    office = visit.office(engine)
    other = visit.office(engine, slug="other", app=office.app)
    answer = office.browser("mia").post("/campaigns/new", _fields(office, list_id=str(other.list_id)))
    assert answer.status_code == 422


def test_a_zero_byte_or_half_a_character_in_a_field_is_no_fault_of_the_server(engine: Engine) -> None:
    office = visit.office(engine)
    one = office.browser("mia")
    for name in ("name", "subject", "sender", "html", "text"):
        answer = one.post("/campaigns/new", _fields(office, **{name: "a\x00b"}))
        assert answer.status_code in {303, 422}, name


def test_people_without_the_role_may_not_write(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("abe").post("/campaigns/new", _fields(office), form_at="/")
    assert answer.status_code == 403
    assert "There are no campaigns yet." in visit.words(office.browser("abe").get("/campaigns/"))
