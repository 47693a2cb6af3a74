"""One message type, and what is odd about its keys."""

import uuid

import visit
from sends.types import shop
from sqlalchemy import Engine


def test_a_type_is_shown_with_all_that_is_set(engine: Engine) -> None:
    office, door = shop(engine)
    door.type(key_pattern="order_receipt:{order_id}", window_s=86_400, mode="observe", on_conflict="first")
    words = visit.words(office.browser("oda").get("/sends/message-type/order_receipt"))
    for said in ("order_receipt:{order_id}", "for 1d", "a repeat goes out", "answer with the first message",
                 "Shop <shop@example.com>", "after 12 attempts, or 4d"):  # fmt: skip
        assert said in words
    assert "None so far." in words


def test_odd_keys_are_pointed_out_with_their_messages(engine: Engine) -> None:
    office, door = shop(engine)
    first = door.accept(code_path="shop.pay")
    door.conflict(params={"order_id": 2}, code_path="shop.retry")
    for _ in range(2):
        door.accept(dedupe_key=str(uuid.uuid4()), params={"order_id": 3})
    door.type(mode="observe")
    door.accept(to="Rita@example.com", code_path="shop.hook")
    answer = office.browser("oda").get("/sends/message-type/order_receipt")
    words = visit.words(answer)
    assert "Refused: the key is taken by other content. It differs in params. The key is too broad" in words
    assert "Repeat that was sent: it would have been stopped." in words
    assert words.count("The key looks random") == 1
    assert f'href="/sends/{first.id}"' in answer.get_data(as_text=True)
    assert "rita@example.com api shop.retry" in words
    assert "shop.pay" not in words


def test_the_campaigns_own_type_shows_what_goes_for_campaigns_alone(engine: Engine) -> None:
    office, _ = shop(engine)
    words = visit.words(office.browser("ada").get("/sends/message-type/campaign"))
    assert "after 12 attempts, or 4d" in words
    assert "Key pattern" not in words


def test_one_that_is_not_there_or_of_another_account_is_not_found(engine: Engine) -> None:
    office, _ = shop(engine)
    _, other = shop(engine, slug="other", app=office.app)
    other.type("theirs")
    browser = office.browser("ada")
    assert browser.get("/sends/message-type/nothing").status_code == 404
    assert browser.get("/sends/message-type/theirs").status_code == 404
    assert browser.get("/sends/edit-message-type/theirs").status_code == 404
