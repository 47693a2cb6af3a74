"""The list of templates."""

import visit
from sends.types import shop
from sqlalchemy import Engine


def test_templates_are_listed_with_their_newest_version(engine: Engine) -> None:
    office, door = shop(engine)
    door.template(subject="Order {{ order_id }}, newer")
    door.template("welcome", subject="Welcome")
    words = visit.words(office.browser("mia").get("/sends/templates"))
    assert "receipt Order {{ order_id }}, newer 2" in words
    assert "welcome Welcome 1" in words
    assert "by the command line" in words


def test_an_account_without_any_is_told_who_writes_them(engine: Engine) -> None:
    office = visit.office(engine)
    assert "Write the first one" in visit.words(office.browser("mia").get("/sends/templates"))
    assert "A marketer of your account can write one" in visit.words(office.browser("oda").get("/sends/templates"))


def test_templates_of_another_account_are_not_listed(engine: Engine) -> None:
    office, _ = shop(engine)
    _, other = shop(engine, slug="other", app=office.app)
    other.template("their_secret")
    assert "their_secret" not in visit.words(office.browser("ada").get("/sends/templates"))
