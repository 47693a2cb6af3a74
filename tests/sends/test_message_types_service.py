"""Message types and their templates: what is refused by field, and that types move on to a template's new version."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import doorway
import pytest
from doorway import Doorway
from sqlalchemy import Engine

from console.db import transaction
from console.errors import InvalidInput, NotFound
from console.sends import message_types, type_store
from console.sends.type_store import TypeRow


@pytest.fixture
def door(engine: Engine) -> Doorway:
    return doorway.doorway(engine)


def kept(door: Doorway, name: str = "order_receipt") -> TypeRow:
    with transaction(door.engine) as session:
        return type_store.show(session, door.account_id, name)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"name": "Order Receipt"}, "name"),
        ({"lane": "fast"}, "lane"),
        ({"sender": ""}, "sender"),
        ({"sender": "Shop"}, "sender"),
        ({"sender": "{{ shop }} <shop@example.com>"}, "sender"),
        ({"key_pattern": "order_receipt"}, "key_pattern"),
        ({"key_pattern": "order_receipt:{order_id"}, "key_pattern"),
        ({"key_pattern": "order_receipt:{}"}, "key_pattern"),
        ({"key_pattern": "campaign:{order_id}:{recipient}"}, "key_pattern"),
        ({"key_pattern": "x" * 200 + "{order_id}"}, "key_pattern"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(door: Doorway, settings: dict, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        door.type(**settings)
    assert refused.value.field == field


def test_a_type_needs_a_template_that_is_there(door: Doorway) -> None:
    with pytest.raises(NotFound, match="no template 'other'"):
        door.type(template="other")


@pytest.mark.parametrize(
    ("parts", "field", "words"),
    [
        ({"subject": ""}, "subject", "empty"),
        ({"html": "<p>\n{{ order_id }}\n{% if x %}</p>"}, "html", "line 3"),
        ({"body": "one\n{{ name"}, "text", "line 2"),
        ({"html": "<a href='{{ unsubscribe_url }}'>leave</a>"}, "html", "only campaigns"),
    ],
)
def test_a_template_that_cant_be_made_is_refused_with_field_and_line(
    door: Doorway, parts: dict, field: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        door.template(**parts)
    assert refused.value.field == field
    assert door.sql("SELECT version FROM templates")[0].version == 1


def test_a_new_version_is_what_the_next_message_of_each_type_is_made_from(door: Doorway) -> None:
    door.type("order_copy", sender="Copies <copies@example.com>")
    before = door.accept()
    assert door.template(subject="Order {{ order_id }} ({{ total }})") == 2
    with pytest.raises(InvalidInput, match="total") as refused:
        door.accept(dedupe_key="order_receipt:1002")
    assert refused.value.field == "params"
    for name in ("order_receipt", "order_copy"):
        door.accept(message_type=name, dedupe_key=f"{name}:1003", params={"order_id": 1003, "total": "9"})
    contents = door.sql(
        "SELECT c.subject, c.sender, c.text FROM sends s JOIN send_contents c ON c.id = s.content_id ORDER BY s.id"
    )
    assert [tuple(each) for each in contents] == [
        ("Your order {{ order_id }}", "Shop <shop@example.com>", "Thanks for {{ order_id }}\n"),
        ("Order {{ order_id }} ({{ total }})", "Shop <shop@example.com>", "Thanks for {{ order_id }}\n"),
        ("Order {{ order_id }} ({{ total }})", "Copies <copies@example.com>", "Thanks for {{ order_id }}\n"),
    ]
    assert door.accept().id == before.id


def test_a_type_that_is_set_while_its_template_changes_ends_with_the_new_version(door: Doorway) -> None:
    """Whichever comes first waits for the other at the template's row."""
    with transaction(door.engine) as session, ThreadPoolExecutor(1) as people:
        message_types.save_template(
            session, door.account_id, name="receipt", subject="Newer {{ order_id }}", html="<p>{{ order_id }}</p>"
        )
        other = people.submit(door.type, "order_copy")
        with pytest.raises(TimeoutError):
            other.result(0.5)
        session.commit()
        assert other.result(10) == "order_copy"
    subjects = door.sql(
        "SELECT c.subject FROM message_types t JOIN send_contents c ON c.id = t.content_id ORDER BY t.name"
    )
    assert [each.subject for each in subjects] == ["Newer {{ order_id }}", "Newer {{ order_id }}"]


def test_setting_a_type_to_what_it_is_makes_no_second_content(door: Doorway) -> None:
    for _ in range(3):
        door.type()
    assert door.sql("SELECT count(*) AS n FROM send_contents")[0].n == 1


def test_of_the_campaigns_own_type_only_doubt_attempts_and_age_can_be_set(door: Doorway) -> None:
    own = kept(door, "campaign")
    changed = replace(own, in_doubt_policy="resend", attempt_cap=3, age_cap_s=3600)
    with transaction(door.engine) as session:
        assert message_types.put_type(session, door.account_id, changed) is False
    assert kept(door, "campaign") == changed
    for field, value in (("lane", "urgent"), ("template", "receipt"), ("key_pattern", "x:{recipient}")):
        with transaction(door.engine) as session, pytest.raises(InvalidInput) as refused:
            message_types.put_type(session, door.account_id, replace(changed, **{field: value}))
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match="no message type 'campaign'"):
        door.accept(message_type="campaign")
