"""The life of a rule: draft, tried out, on, off; and nobody switches on what nobody has tried."""

from dataclasses import replace
from typing import Any

import post
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from console.db import transaction
from console.errors import Conflict, Forbidden, InvalidInput, NotFound
from console.inbox import reading, rule_store, rules
from console.inbox.reading import Trial
from console.inbox.rule_store import RuleRow


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine, is_on=False)


def _row(shop: post.Shop, rule_id: int | None = None) -> RuleRow:
    with transaction(shop.engine) as session:
        return rule_store.show_rule(session, shop.office.account_id, rule_id or shop.rule_id)


def _try(shop: post.Shop, event_id: int, *, rule_id: int | None = None, name: str = "ada") -> Trial:
    with transaction(shop.engine) as session:
        return reading.try_out(
            session, shop.office.account_id, rule_id or shop.rule_id, user_id=shop.office.users[name], event_id=event_id
        )


def _on(shop: post.Shop, rule_id: int | None = None, *, version: int = 1, name: str = "ada") -> list[str]:
    with transaction(shop.engine) as session:
        return rules.switch_on(
            session, shop.office.account_id, rule_id or shop.rule_id, user_id=shop.office.users[name],
            seen_version=version,
        )  # fmt: skip


def _edit(shop: post.Shop, *, seen_version: int = 1, **changes: Any) -> None:
    with transaction(shop.engine) as session:
        rules.edit_rule(
            session, shop.office.account_id, shop.rule_id, user_id=shop.office.users["ada"],
            draft=replace(post.DRAFT, **changes), seen_version=seen_version,
        )  # fmt: skip


def test_a_trial_shows_what_would_be_sent_and_sends_and_records_nothing(shop: post.Shop) -> None:
    event_id = shop.post()
    shop.read()
    trial = _try(shop, event_id)
    assert trial.problem == ""
    assert trial.asked is not None
    assert trial.receipt is not None
    assert (trial.asked.to, dict(trial.asked.params)) == ("rita@example.com", {"order_id": 1001, "name": "Rita"})
    assert (trial.receipt.dedupe_key, trial.receipt.decision) == ("webhook:shop:evt_1", "accepted")
    assert shop.sends() == shop.triggers() == []
    assert (_row(shop).tried_version, _row(shop).tried_event_id, _row(shop).status) == (1, event_id, "draft")


def test_a_version_that_was_not_tried_out_can_not_be_switched_on(shop: post.Shop) -> None:
    with pytest.raises(Conflict, match="has not been tried out"):
        _on(shop)
    _try(shop, shop.post())
    assert _on(shop) == []
    assert _row(shop).status == "on"
    _edit(shop, seen_version=1)
    assert (_row(shop).status, _row(shop).version) == ("draft", 2)
    with pytest.raises(Conflict, match="has not been tried out"):
        _on(shop, version=2)
    # Nor by anybody who goes round the program.
    with pytest.raises(IntegrityError), transaction(shop.engine) as session:
        session.execute(text("UPDATE inbox_rules SET status = 'on'"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"recipient_path": "$.nowhere"}, "nothing at $.nowhere"), ({"params": {}}, "needs name, order_id"),
     ({"event_type": "order.refunded"}, "this rule is for order.refunded"), ({"message_type": "none"},
     "no message type")],
)  # fmt: skip
def test_a_trial_that_fails_says_why_and_counts_for_nothing(shop: post.Shop, changes: dict, words: str) -> None:
    event_id = shop.post()
    _edit(shop, **changes)
    assert words in _try(shop, event_id).problem
    assert _row(shop).tried_version is None
    with pytest.raises(Conflict):
        _on(shop, version=2)


def test_a_failed_trial_after_a_good_one_leaves_the_good_one(shop: post.Shop) -> None:
    _try(shop, shop.post())
    assert _try(shop, shop.post(id="evt_2", data={})).problem
    assert _row(shop).tried_version == 1


def test_an_event_of_another_endpoint_is_no_trial(shop: post.Shop) -> None:
    other = post.endpoint(shop.office, name="other")
    assert "came to the endpoint other" in _try(shop, shop.post(made=other)).problem
    with pytest.raises(NotFound):
        _try(shop, 10**9)


def test_a_trial_of_a_version_that_was_changed_meanwhile_counts_for_nothing(
    shop: post.Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = shop.post()
    check = reading.intake.check

    def change_first(*arguments):
        receipt = check(*arguments)
        _edit(shop)
        return receipt

    monkeypatch.setattr(reading.intake, "check", change_first)
    with pytest.raises(Conflict, match="at the same moment"):
        _try(shop, event_id)
    assert (_row(shop).version, _row(shop).tried_version) == (2, None)


def test_who_looks_at_an_old_version_changes_and_switches_nothing(shop: post.Shop) -> None:
    _try(shop, shop.post())
    _edit(shop)
    with pytest.raises(Conflict, match="at version 2"):
        _edit(shop, seen_version=1)
    with pytest.raises(Conflict, match="at version 2"):
        _on(shop, version=1)
    assert _row(shop).status == "draft"


def test_switching_on_takes_the_place_of_the_rule_for_the_same_type(shop: post.Shop) -> None:
    event_id = shop.post()
    second, other = shop.draft("second"), shop.draft("other", event_type="*")
    for rule_id in (shop.rule_id, second, other):
        assert not _try(shop, event_id, rule_id=rule_id).problem
    assert _on(shop) == []
    assert _on(shop, other) == []
    assert _on(shop, second) == ["receipt"]
    assert [_row(shop, rule_id).status for rule_id in (shop.rule_id, second, other)] == ["off", "on", "on"]
    with pytest.raises(Conflict, match="is on already"):
        _on(shop, second)
    assert _row(shop, second).status == "on"


def test_a_rule_that_could_not_be_switched_on_leaves_the_other_on(shop: post.Shop) -> None:
    _try(shop, shop.post())
    _on(shop)
    untried = shop.draft("untried")
    with pytest.raises(Conflict):
        _on(shop, untried)
    assert _row(shop).status == "on"


def test_a_rule_is_switched_off_once_and_on_again_without_a_new_trial(shop: post.Shop) -> None:
    _try(shop, shop.post())
    _on(shop)
    for is_on in (True, False):
        with transaction(shop.engine) as session:
            if is_on:
                rules.switch_off(session, shop.office.account_id, shop.rule_id, user_id=shop.office.users["ada"])
            else:
                with pytest.raises(Conflict, match="is not on"):
                    rules.switch_off(session, shop.office.account_id, shop.rule_id, user_id=shop.office.users["ada"])
    assert _on(shop) == []


@pytest.mark.parametrize("name", ["mia", "abe", "sue", "oda"])
def test_only_admins_write_try_and_switch_rules(shop: post.Shop, name: str) -> None:
    event_id = shop.post()
    user_id, account_id = shop.office.users[name], shop.office.account_id
    with pytest.raises(Forbidden):
        _try(shop, event_id, name=name)
    with pytest.raises(Forbidden):
        _on(shop, name=name)
    with pytest.raises(Forbidden), transaction(shop.engine) as session:
        rules.add_rule(session, account_id, shop.made.endpoint_id, user_id=user_id, draft=replace(post.DRAFT, name="x"))
    with pytest.raises(Forbidden), transaction(shop.engine) as session:
        rules.switch_off(session, account_id, shop.rule_id, user_id=user_id)


def test_operators_and_support_read_events_again_and_marketers_do_not(shop: post.Shop) -> None:
    event_id = shop.post()
    for name in ("oda", "sue", "ada"):
        shop.read()
        with transaction(shop.engine) as session:
            user_id = shop.office.users[name]
            assert reading.replay(session, shop.office.account_id, user_id=user_id, event_ids=[event_id]) == [event_id]
            # It waits now.
            assert reading.replay(session, shop.office.account_id, user_id=user_id, event_ids=[event_id]) == []
    for name in ("mia", "abe"):
        with pytest.raises(Forbidden), transaction(shop.engine) as session:
            reading.replay(session, shop.office.account_id, user_id=shop.office.users[name], event_ids=[event_id])
    audit = post.rows(shop.office, "SELECT user_id FROM audit_entries WHERE action = 'inbox.event.replay' ORDER BY id")
    assert [row.user_id for row in audit] == [shop.office.users[name] for name in ("oda", "sue", "ada")]


def test_nobody_touches_the_rules_and_events_of_another_account(shop: post.Shop) -> None:
    event_id = shop.post()
    shop.read()
    other = post.visit.office(shop.engine, slug="other", app=shop.office.app)
    with transaction(shop.engine) as session:
        assert reading.replay(session, other.account_id, user_id=other.users["ada"], event_ids=[event_id]) == []
    with pytest.raises(NotFound), transaction(shop.engine) as session:
        reading.try_out(session, other.account_id, shop.rule_id, user_id=other.users["ada"], event_id=event_id)
    with pytest.raises(NotFound), transaction(shop.engine) as session:
        rules.switch_on(session, other.account_id, shop.rule_id, user_id=other.users["ada"], seen_version=1)
    with pytest.raises(NotFound), transaction(shop.engine) as session:
        rules.add_rule(session, other.account_id, shop.made.endpoint_id, user_id=None, draft=post.DRAFT)


def test_lines_of_names_and_paths_are_read_and_written_alike() -> None:
    typed = "\n order_id = $.data.order.id \nname=$['a = b']\n\n"
    found = rules.pairs(typed, field="params")
    assert found == {"order_id": "$.data.order.id", "name": "$['a = b']"}
    assert rules.pairs(rules.lines(found), field="params") == found


@pytest.mark.parametrize("typed", ["a", "= $.a", "a =", "a = $.a\na = $.b", "a b = $.c"])
def test_a_line_that_is_none_is_named(typed: str) -> None:
    with pytest.raises(InvalidInput, match="Line ") as refused:
        rules.pairs(typed, field="params")
    assert refused.value.field == "params"
