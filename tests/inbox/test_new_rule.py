"""GET and POST /inbox/new-rule/<endpoint_id>."""

import post
import pytest
import visit
from sqlalchemy import Engine

FIELDS = {
    "name": "shipped", "event_type": "order.shipped", "message_type": "receipt",
    "recipient_path": "data.customer.email",
    "params": "order_id = data.order.id\r\nname = $.data.customer.name\r\n", "dedupe_pattern": "shipped:{order_id}",
    "entities": "order=$.data.order.id",
}  # fmt: skip


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine)


def test_a_rule_is_written_as_a_draft(shop: post.Shop) -> None:
    answer = shop.office.browser("ada").post(f"/inbox/new-rule/{shop.made.endpoint_id}", FIELDS)
    [row] = post.rows(shop.office, "SELECT * FROM inbox_rules WHERE name = 'shipped'")
    assert answer.headers["Location"] == f"/inbox/rule/{row.id}"
    assert (row.status, row.recipient_path, row.dedupe_pattern) == (
        "draft",
        "$.data.customer.email",
        "shipped:{order_id}",
    )
    assert row.params == {"order_id": "$.data.order.id", "name": "$.data.customer.name"}
    assert row.entities == {"order": "$.data.order.id"}


@pytest.mark.parametrize(
    ("changes",
    "words"),
    [({"name": "receipt"}, "choose another name"), ({"name": "A b"}, "A rule's name has"),
     ({"event_type": ""}, "Name the type"),
     ({"message_type": "campaign"}, "Not a valid choice"), ({"recipient_path": "$.a.*"}, "several values"),
     ({"params": "order_id"}, "Line 1"), ({"params": "order_id = $..x"}, "several values"),
     ({"dedupe_pattern": "same"}, "no {name} in it"), ({"dedupe_pattern": "{x}"}, "neither a parameter"),
     ({"entities": "a = $.a\r\na = $.b"}, "a second time"), ({"params": "a = $.a\x00"}, "NUL")],
)  # fmt: skip
def test_what_is_wrong_stands_beside_its_field(shop: post.Shop, changes: dict, words: str) -> None:
    answer = shop.office.browser("ada").post(f"/inbox/new-rule/{shop.made.endpoint_id}", FIELDS | changes)
    assert answer.status_code == 422
    assert words in visit.words(answer)
    assert len(post.rows(shop.office, "SELECT 1 FROM inbox_rules")) == 1


def test_without_a_message_type_it_says_how_to_make_one(engine: Engine) -> None:
    office = visit.office(engine)
    made = post.endpoint(office)
    shown = visit.words(office.browser("ada").get(f"/inbox/new-rule/{made.endpoint_id}"))
    assert "sendonce message-type set NAME" in shown


def test_only_admins_of_the_account_write_rules(shop: post.Shop) -> None:
    path = f"/inbox/new-rule/{shop.made.endpoint_id}"
    assert shop.office.browser("oda").get(path).status_code == 403
    assert visit.office(shop.engine, slug="other", app=shop.office.app).browser("ada").get(path).status_code == 404
