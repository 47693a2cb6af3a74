"""GET and POST /inbox/edit-rule/<rule_id>."""

import post
import pytest
import visit
from sqlalchemy import Engine


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine)


FIELDS = {
    "event_type": "order.paid", "message_type": "receipt", "recipient_path": "$.buyer", "params": "", "entities": "",
    "dedupe_pattern": "",
}  # fmt: skip


def test_a_rule_that_is_on_is_a_draft_after_a_change_and_the_page_says_so_before(shop: post.Shop) -> None:
    path = f"/inbox/edit-rule/{shop.rule_id}"
    one = shop.office.browser("ada")
    page = one.get(path)
    assert "Saving makes it a draft." in visit.words(page)
    assert "name = $.data.customer.name\norder_id = $.data.order.id" in page.get_data(as_text=True)
    assert one.post(path, FIELDS).headers["Location"] == f"/inbox/rule/{shop.rule_id}"
    [row] = post.rows(shop.office, "SELECT * FROM inbox_rules")
    assert (row.status, row.version, row.recipient_path, row.params, row.name) == ("draft", 2, "$.buyer", {}, "receipt")


def test_two_people_who_change_it_at_once_do_not_undo_each_other(shop: post.Shop) -> None:
    path = f"/inbox/edit-rule/{shop.rule_id}"
    one, hidden = shop.office.browser("ada"), shop.office.browser("ada").hidden(path)
    assert hidden["version"] == "1"
    assert one.post(path, FIELDS).status_code == 303
    answer = one.post(path, FIELDS | {"recipient_path": "$.other", "version": "1"})
    assert answer.status_code == 409
    assert "It is at version 2 now" in visit.words(answer).replace("it is", "It is")
    assert post.rows(shop.office, "SELECT recipient_path FROM inbox_rules") == [("$.buyer",)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recipient_path": ""}, "Say where the recipient's address stands"),
        ({"params": "x"}, "Line 1"),
        ({"version": "x"}, "version"),
    ],
)
def test_what_is_wrong_changes_nothing(shop: post.Shop, changes: dict, words: str) -> None:
    answer = shop.office.browser("ada").post(f"/inbox/edit-rule/{shop.rule_id}", FIELDS | changes)
    assert answer.status_code == 422
    assert words in visit.words(answer)
    assert post.rows(shop.office, "SELECT version, status FROM inbox_rules") == [(1, "on")]


def test_only_admins_of_the_account_change_rules(shop: post.Shop) -> None:
    path = f"/inbox/edit-rule/{shop.rule_id}"
    assert shop.office.browser("oda").get(path).status_code == 403
    assert visit.office(shop.engine, slug="other", app=shop.office.app).browser("ada").get(path).status_code == 404
