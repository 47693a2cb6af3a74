"""Making a message type."""

import pytest
import visit
from sends.types import TYPE, shop
from sqlalchemy import Engine

PATH = "/sends/new-message-type"


def test_a_type_is_made_as_it_was_filled_in(engine: Engine) -> None:
    office, door = shop(engine)
    answer = office.browser("ada").post(PATH, {**TYPE, "name": "order_copy"})
    assert (answer.status_code, answer.location) == (303, "/sends/message-type/order_copy")
    (row,) = door.sql("SELECT * FROM message_types WHERE name = 'order_copy'")
    assert (row.lane, row.template, row.sender, row.route) == ("normal", "receipt", "Shop <shop@example.com>", None)
    assert (row.key_pattern, row.window_s, row.mode) == ("order_receipt:{order_id}", 86_400, "observe")
    assert (row.on_conflict, row.in_doubt_policy, row.attempt_cap, row.age_cap_s) == ("first", "resend", 5, 7200)
    (entry,) = door.sql("SELECT * FROM audit_entries WHERE action = 'message_type.set' AND user_id IS NOT NULL")
    assert (entry.user_id, entry.object_id, entry.details["mode"]) == (office.users["ada"], "order_copy", "observe")
    assert door.accept(message_type="order_copy", dedupe_key=None).dedupe_key == "order_receipt:1001"


def test_the_form_offers_templates_routes_and_the_installations_sender(engine: Engine) -> None:
    office, door = shop(engine)
    door.sql(
        "INSERT INTO routes (account_id, name, providers) VALUES (:id, 'careful', ARRAY['smtp'])", id=office.account_id
    )
    page = office.browser("ada").get(PATH).get_data(as_text=True)
    assert '<option value="receipt">' in page
    assert '<option value="careful">' in page
    assert 'value="no-reply@' in page


def test_with_htmx_the_whole_page_moves_on(engine: Engine) -> None:
    office, _ = shop(engine)
    answer = office.browser("ada").post(PATH, {**TYPE, "name": "order_copy"}, headers=visit.HTMX)
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/sends/message-type/order_copy")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "Order Copy"}, "name"),
        ({"name": "order_receipt"}, "name"),
        ({"sender": "nobody"}, "sender"),
        ({"sender": ""}, "sender"),
        ({"key_pattern": "no part"}, "key_pattern"),
        ({"window": "tomorrow"}, "window"),
        ({"max_age": "0m"}, "max_age"),
        ({"attempt_cap": "0"}, "attempt_cap"),
        ({"attempt_cap": "many"}, "attempt_cap"),
        ({"lane": "fast"}, "lane"),
        ({"template": "other"}, "template"),
        ({"route": "other"}, "route"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_made(engine: Engine, fields: dict, field: str) -> None:
    office, door = shop(engine)
    before = door.sql("SELECT * FROM message_types ORDER BY name")
    answer = office.browser("ada").post(PATH, {**TYPE, "name": "order_copy", **fields})
    assert answer.status_code == 422
    assert f'id="{field}-error"' in answer.get_data(as_text=True)
    assert door.sql("SELECT * FROM message_types ORDER BY name") == before


@pytest.mark.parametrize("name", ["mia", "oda", "abe", "sue"])
def test_only_admins_make_types(engine: Engine, name: str) -> None:
    office, door = shop(engine)
    browser = office.browser(name)
    assert browser.get(PATH).status_code == 403
    assert browser.post(PATH, {**TYPE, "name": "x"}, form_at="/sends/message-types").status_code == 403
    assert len(door.sql("SELECT FROM message_types")) == 2


def test_a_form_without_its_token_is_refused(engine: Engine) -> None:
    office, door = shop(engine)
    assert office.browser("ada").client.post(PATH, data={**TYPE, "name": "x"}).status_code == 400
    assert len(door.sql("SELECT FROM message_types")) == 2
