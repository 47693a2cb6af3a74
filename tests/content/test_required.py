"""Which fields are asked for before a message is accepted: those, and only those, without which it surely fails."""

import make
import pytest

from console.content.compile import compile_content
from console.content.fill import fill
from console.content.header import Headers
from console.content.required import required_fields
from console.content.source import Source, Unfillable

ALL = {"a": "x", "b": "y", "c": {"d": 1}, "e": [{"f": "z"}], "n": 3}


def source(html: str) -> Source:
    return Source(subject="Hello", sender="Shop <shop@example.com>", html=html, text="Hello")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("{{ a }} and {{ b }}", {"a", "b"}),
        ("{{ c.d }}{{ c['d'] }}", {"c"}),
        ("{{ a | upper }}{{ b | trim | title }}", {"a", "b"}),
        ("{{ a ~ ' ' ~ b }}{{ n + 1 }}", {"a", "b", "n"}),
        ("{% for each in e %}{{ each.f }}{{ a }}{% endfor %}", {"e"}),
        ("{{ a | default('you') }}{{ a | default('you') | upper }}{{ b | d(a) }}", set()),
        ("{% if a %}{{ a }}{% endif %}", set()),
        ("{% if a %}{{ a }}{% else %}{{ b }}{% endif %}", set()),
        ("{{ a if a else b }}{{ a or b }}{{ n > 2 and a }}", set()),
        ("{{ email }}", {"email"}),
        ("no field { at all }", set()),
    ],
)
def test_only_what_is_read_in_any_case_is_required(html: str, expected: set[str]) -> None:
    assert required_fields(source(html)) == expected
    compiled = compile_content(source(html))
    for name in expected - {"email"}:
        without = {key: value for key, value in ALL.items() if key != name}
        with pytest.raises(Unfillable, match=name):
            fill(compiled, make.recipient(without), Headers(list_id=None, feedback_id="x"))


def test_all_parts_are_read() -> None:
    parts = Source(subject="{{ s }}", sender="{{ n }} <shop@example.com>", html="{{ h }}", text="{{ t }}")
    assert required_fields(parts) == {"s", "n", "h", "t"}
