"""One template with its versions."""

import visit
from sends.types import shop
from sqlalchemy import Engine


def test_the_newest_version_is_shown_with_its_parameters_and_its_users(engine: Engine) -> None:
    office, door = shop(engine)
    door.template(html="<p>{{ order_id }} {{ total | default('') }}</p><script>alert(1)</script>")
    answer = office.browser("oda").get("/sends/template/receipt")
    words = visit.words(answer)
    assert "Parameters order_id, total" in words
    assert "Used by order_receipt" in words
    assert "Version 2" in words
    assert "<script>alert(1)</script>" not in answer.get_data(as_text=True)
    assert "&lt;script&gt;alert(1)" in answer.get_data(as_text=True)


def test_an_older_version_says_that_it_is_not_in_force(engine: Engine) -> None:
    office, door = shop(engine)
    door.template(subject="Newer")
    browser = office.browser("oda")
    words = visit.words(browser.get("/sends/template/receipt?version=1"))
    assert "This is version 1; version 2 is in force." in words
    assert "Your order {{ order_id }}" in words
    for odd in ("3", "0", "x", "01", "9" * 30):
        assert browser.get(f"/sends/template/receipt?version={odd}").status_code == 404


def test_one_that_is_not_there_or_of_another_account_is_not_found(engine: Engine) -> None:
    office, _ = shop(engine)
    _, other = shop(engine, slug="other", app=office.app)
    other.template("theirs")
    browser = office.browser("ada")
    for path in ("template/nothing", "template/theirs", "edit-template/theirs"):
        assert browser.get(f"/sends/{path}").status_code == 404
