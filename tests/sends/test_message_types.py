"""The list of message types."""

import visit
from sends.types import shop
from sqlalchemy import Engine


def test_the_types_are_listed_with_how_they_are_treated(engine: Engine) -> None:
    office, door = shop(engine)
    door.type("password_reset", lane="urgent", window_s=3600, mode="observe", age_cap_s=900)
    words = visit.words(office.browser("oda").get("/sends/message-types"))
    assert "password_reset urgent receipt observe for 1h hold after 12 attempts or 15m" in words
    assert "order_receipt normal receipt enforce forever hold after 12 attempts or 4d" in words


def test_an_account_without_types_is_told_what_they_are_for(engine: Engine) -> None:
    office = visit.office(engine)
    assert "Make the first one" in visit.words(office.browser("ada").get("/sends/message-types"))
    assert "An admin of your account can make one" in visit.words(office.browser("mia").get("/sends/message-types"))


def test_only_admins_see_the_way_to_a_new_one(engine: Engine) -> None:
    office, _ = shop(engine)
    assert "/sends/new-message-type" in office.browser("ada").get("/sends/message-types").get_data(as_text=True)
    assert "/sends/new-message-type" not in office.browser("oda").get("/sends/message-types").get_data(as_text=True)


def test_types_of_another_account_are_not_listed(engine: Engine) -> None:
    office, _ = shop(engine)
    _, other = shop(engine, slug="other", app=office.app)
    other.type("their_secret_type")
    assert "their_secret_type" not in visit.words(office.browser("ada").get("/sends/message-types"))
