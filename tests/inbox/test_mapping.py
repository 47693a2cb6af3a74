"""What a rule makes of an event."""

import pytest

from console.errors import InvalidInput
from console.inbox.mapping import RuleMap, Source, check_names, check_pattern, default_key, map_event

SOURCE = Source(endpoint="shop", event_id="evt_1", event_type="order.paid")
EVENT = {"id": 7, "ok": True, "note": "", "to": "rita@example.com", "items": [{"sku": "a1", "n": 2}], "none": None}


def _map(**changes: object) -> RuleMap:
    return RuleMap(**({"recipient_path": "$.to", "params": {}, "dedupe_pattern": "", "entities": {}} | changes))  # type: ignore[arg-type]


def test_values_keep_their_kind_and_entities_become_text() -> None:
    rule = _map(
        params={"items": "$.items", "n": "$.items[0].n", "none": "$.none"}, entities={"order": "$.id", "ok": "$.ok"}
    )
    mapped = map_event(EVENT, rule, SOURCE)
    assert mapped.params == {"items": [{"sku": "a1", "n": 2}], "n": 2, "none": None}
    assert mapped.entities == {"order": "7", "ok": "true", "webhook_event": "evt_1"}
    assert (mapped.to, mapped.dedupe_key) == ("rita@example.com", None)


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"recipient_path": "$.nobody"}, "recipient_path"), ({"recipient_path": "$.id"}, "recipient_path"),
     ({"recipient_path": "$.note"}, "recipient_path"), ({"params": {"a": "$.a"}}, "params"),
     ({"entities": {"a": "$.items"}}, "entities"), ({"entities": {"a": "$.none"}}, "entities"),
     ({"dedupe_pattern": "$.nobody"}, "dedupe_pattern"), ({"dedupe_pattern": "$.items"}, "dedupe_pattern"),
     ({"dedupe_pattern": "k:{x}", "params": {"x": "$.note"}}, "dedupe_pattern"),
     ({"dedupe_pattern": "k:{x}", "params": {"x": "$.none"}}, "dedupe_pattern")],
)  # fmt: skip
def test_what_is_missing_is_refused_and_never_left_out(changes: dict, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        map_event(EVENT, _map(**changes), SOURCE)
    assert refused.value.field == field


def test_a_key_is_filled_from_names_once_and_not_from_what_is_in_the_values() -> None:
    rule = _map(params={"x": "$.x"}, dedupe_pattern="k:{x}:{event_id}")
    assert map_event({**EVENT, "x": "{event_id}{y}"}, rule, SOURCE).dedupe_key == "k:{event_id}{y}:evt_1"


@pytest.mark.parametrize(
    "pattern", ["receipt", "receipt:{nothing}", "{}", "{order", "x" * 600, "$..a", "{order}" * 100]
)
def test_a_pattern_that_could_not_work_is_refused_when_it_is_written(pattern: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_pattern(pattern, names={"order": "$.id"})
    assert refused.value.field == "dedupe_pattern"


def test_a_pattern_may_name_the_rules_own_and_the_events() -> None:
    for pattern in ("", "r:{order}", "{endpoint}:{event_type}:{event_id}", "$.data.id"):
        assert check_pattern(f" {pattern} ", names={"order": "$.id"}) == pattern


@pytest.mark.parametrize(
    "pairs", [{"a b": "$.a"}, {"1a": "$.a"}, {"a": ""}, {"a": "$..a"}, {"": "$.a"}, {f"n{n}": "$" for n in range(200)}]
)
def test_names_are_names_and_paths_are_paths(pairs: dict) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_names(pairs, field="params")
    assert refused.value.field == "params"


def test_without_a_key_the_event_is_the_key() -> None:
    assert default_key(SOURCE) == "webhook:shop:evt_1"
