"""JSON bodies and the paths into them."""

import pytest

from console.errors import InvalidInput
from console.inbox import paths


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("id", "$.id"), (" $.data.email ", "$.data.email"), ("data.items[0]", "$.data.items[0]"), ("$", "$"), ("", ""),
     ("$['a b'][-1]", "$['a b'][-1]"), ("größe", "$.größe")],
)  # fmt: skip
def test_a_path_is_kept_with_its_root(typed: str, kept: str) -> None:
    assert paths.check_path(typed, field="path") == kept


@pytest.mark.parametrize(
    "typed",
    ["$..email", "$.items[*].id", "$.a[0:2]", "$.a['b','c']", "$[?@.a==1]", "$[?match(@.a, '(x+)+y')]", "$.a[", "a b",
     "$.a | $.b", "$" + "[?(" * 90, "(" * 250, "$." + "x" * 300, "$.a\x00b c"],
)  # fmt: skip
def test_a_path_to_several_values_or_none_is_refused(typed: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        paths.check_path(typed, field="recipient_path")
    assert refused.value.field == "recipient_path"


def test_a_path_leads_to_its_value_and_null_is_one() -> None:
    document = {"a": {"b": [None, {"c d": 3}]}}
    assert paths.read(document, "$.a.b[0]") is None
    assert paths.read(document, "$.a.b[1]['c d']") == 3
    assert paths.read(document, "$.a.b[2]") is paths.NOTHING
    assert paths.read(document, "$.a.b.c") is paths.NOTHING
    assert paths.read("text", "$.a") is paths.NOTHING
    assert paths.read([1, 2], "$[-1]") == 2


@pytest.mark.parametrize(
    ("body", "words"),

        [(b"", "empty"), (b" \r\n", "empty"), (b"{", "line 1, column 2"), (b"a=1&b=2", "not JSON"),
     (b"\xff\x00\xff", "UTF-8"),
     (b"[" * 200_000, "too deeply"), (b'{"a":' * 200_000, "too deeply"), (b"[NaN]", "NaN"), (b"1" * 10_000, "digits"),
     (b"{}{}", "not JSON")],
)  # fmt: skip
def test_a_body_that_is_no_json_says_so(body: bytes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        paths.parse_body(body)


def test_json_of_any_kind_is_read() -> None:
    assert paths.parse_body(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert paths.parse_body(b"[1]") == [1]
    assert paths.parse_body(b"null") is None


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", {"\x00": 1}, [{"a": ["\udfff"]}], float("inf")])
def test_what_the_ledger_cannot_keep_is_refused_before_it_is_tried(value: object) -> None:
    with pytest.raises(InvalidInput, match="The total"):
        paths.check_value(value, what="The total")


def test_a_value_may_be_fifty_deep_and_no_deeper() -> None:
    value: list = []
    for _ in range(paths.DEEPEST_VALUE - 1):
        value = [value]
    assert paths.check_value(value, what="x") == value
    with pytest.raises(InvalidInput, match="50 deep"):
        paths.check_value([value], what="x")
