"""The template language: what it gives, and that untrusted templates can neither reach Python nor run away."""

import time

import make
import pytest

from console.content.compile import PART_CHARS_LIMIT
from console.content.fill import fill
from console.content.source import Unfillable
from console.errors import InvalidInput

HEADERS = make.list_headers()


def test_fields_are_the_top_level_merge_fields_of_all_parts():
    content = make.content(
        subject="{{ a }}",
        sender="{{ b }} <news@example.com>",
        html="{{ c.d }}{% for each in e %}{{ each.f }}{{ loop.index }}{% endfor %}{{ unsubscribe_url }}",
        text="{{ email }}{% if g %}{{ h | default(i) }}{% endif %}{# {{ no }} #}{{ range }}",
    )
    assert content.fields == ("a", "b", "c", "e", "g", "h", "i", "range")


def test_content_says_whether_its_html_has_an_unsubscribe_link():
    assert make.content(html="<a href='{{ unsubscribe_url }}'>leave</a>").has_unsubscribe_link
    assert not make.content(html="<p>none</p>", text="{{ unsubscribe_url }}").has_unsubscribe_link


def test_an_empty_text_part_is_made_from_the_html_part():
    content = make.content(subject="News", html="<p>Hello {{ first_name }}</p>", text=" \n")
    assert b"\r\n\r\nHello=20Rita\r\n" in fill(content, make.recipient(), HEADERS).wire


@pytest.mark.parametrize(
    ("field", "text", "line"),
    [
        ("html", "<p>\n{{ first_name }\n</p>", 2),
        ("text", "a\n\n{% if x %}", 3),
        ("subject", "{{ }}", 1),
        ("sender", "{{ x y }} <news@example.com>", 1),
        ("text", "\n{{ x | nosuchfilter }}", 2),
        ("text", "\n{% if x %}{{ x | nosuchfilter }}{% endif %}", 2),
        ("text", "\n{% if x %}{{ 1 if x is nosuchtest }}{% endif %}", 2),
        ("text", "{% endfor %}", 1),
        ("text", "{% nosuchtag %}", 1),
    ],
)
def test_a_mistake_in_a_template_names_field_and_line(field: str, text: str, line: int):
    with pytest.raises(InvalidInput, match=f"line {line}: ") as caught:
        make.content(**{field: text})
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["subject", "html"])
def test_the_sentence_on_a_mistake_ends_once(field: str):
    with pytest.raises(InvalidInput) as caught:
        make.content(**{field: "{{ first_name"})
    assert str(caught.value).endswith("'end of print statement'.")


@pytest.mark.parametrize(("mark", "words"), [("\x00", "a NUL byte"), ("\ud800", "half a character")])
@pytest.mark.parametrize("field", ["html", "text"])
def test_what_no_database_and_no_message_can_hold_is_refused_by_line(field: str, mark: str, words: str):
    with pytest.raises(InvalidInput, match=f"The {field}, line 3: there is {words}") as caught:
        make.content(**{field: f"one\ntwo\nthree {mark}\n"})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "text"), [("subject", "s" * 901), ("sender", "n" * 490 + " <n@example.com>"), ("html", "h" * 500_001)]
)
def test_what_is_too_long_is_refused_with_its_limit(field: str, text: str):
    with pytest.raises(InvalidInput, match=f"{len(text):,} characters; it may have") as caught:
        make.content(**{field: text})
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["subject", "html"])
def test_an_empty_part_is_refused(field: str):
    with pytest.raises(InvalidInput) as caught:
        make.content(**{field: " \n"})
    assert caught.value.field == field


@pytest.mark.parametrize("subject", ["a\nb", "a\r\nBcc: x@example.com", "a\x00b", "a\u2028b"])
def test_a_line_break_in_the_subject_is_refused(subject: str):
    """C35"""
    with pytest.raises(InvalidInput) as caught:
        make.content(subject=subject)
    assert caught.value.field == "subject"


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ x.__class__.__mro__ }}",
        "{{ x['__class__'] }}",
        "{{ x | attr('__class__') }}",
        "{{ x._y }}",
        "{{ self }}{{ self.__init__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ _x }}",
        "{{ x.format(1) }}",
        "{{ x() }}",
        "{{ '%s' | format(x) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ lipsum(5) }}",
        "{{ namespace(a=1) }}",
        "{{ dict(a=1) }}",
        "{% for i in range(10) %}{% endfor %}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ 'a' * 999999999 }}",
        "{{ [1] * 999999999 }}",
        "{{ x | center(999999999) }}",
        "{{ x | replace('a', 'aaaa') }}",
        "{{ x | indent(999999) }}",
        "{{ x | pprint }}",
        "{{ x | safe }}",
        "{{ x | map('upper') }}",
        "{{ x | tojson }}",
        "{{ x | xmlattr }}",
        "{{ x | groupby('a') }}",
        "{% set x = 'a' %}",
        "{% set x %}a{% endset %}",
        "{% include 'x' %}",
        "{% import 'x' as x %}",
        "{% from 'x' import y %}",
        "{% extends 'x' %}",
        "{% block a %}{% endblock %}",
        "{% macro a() %}{% endmacro %}",
        "{% call x() %}{% endcall %}",
        "{% filter upper %}{% endfilter %}",
        "{% autoescape false %}{% endautoescape %}",
        "{% with a = 1 %}{% endwith %}",
        "{% for a in x recursive %}{% endfor %}",
        "{{ x[1:2] }}",
        "{{ {'a': 1} }}",
        "{% raw %}{{ x }}{% endraw %}{{ x.y() }}",
        "{{ x is sameas y }}",
        "{{ x is filter }}",
        "{% do x %}",
        "{% debug %}",
    ],
)
def test_whatever_could_reach_python_or_grow_is_refused_when_saved(text: str):
    values = {"x": "a", "first_name": "x", "self": "s"}
    for field in ("html", "text", "subject"):
        # Keys that the language lets pass are looked up among the values, where there is nothing behind them.
        with pytest.raises((InvalidInput, Unfillable)):
            fill(make.content(**{field: text}), make.recipient(values), HEADERS)


def test_an_attribute_of_python_is_just_a_missing_key():
    content = make.content(subject="News", html="-", text="{{ x.items }} {{ x['keys'] }} {{ x.copy }}")
    with pytest.raises(Unfillable, match=r"^missing x\.items, x\.keys, x\.copy$"):
        fill(content, make.recipient({"x": {}}), HEADERS)
    content = make.content(subject="News", html="-", text="{{ x.upper }}")
    with pytest.raises(Unfillable, match="plain value"):
        fill(content, make.recipient({"x": "text"}), HEADERS)


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in x %}{% for b in x %}{% for c in x %}" + "{% endfor %}" * 3,
        "{% for a in [1,2,3,4,5,6,7,8,9] %}" * 8 + "{% endfor %}" * 8,
        "{% for a in x %}{% for b in x %}{{ x | join(',') }}{% endfor %}{% endfor %}",
    ],
)
def test_loops_end_soon_however_they_are_nested(text: str):
    content = make.content(subject="News", html="-", text=text)
    began = time.process_time()
    with pytest.raises(Unfillable, match="go around more than"):
        fill(content, make.recipient({"x": ["a"] * 500}), HEADERS)
    assert time.process_time() - began < 20  # of the processor; unbounded, it would not end


def test_a_loop_goes_over_lists_only():
    content = make.content(subject="News", html="-", text="{% for a in x %}{{ a }}{% endfor %}")
    with pytest.raises(Unfillable, match="lists only"):
        fill(content, make.recipient({"x": "abc"}), HEADERS)


def test_a_part_that_grows_out_of_bounds_fails():
    content = make.content(subject="News", html="-", text="{% for a in x %}{{ y }}{% endfor %}")
    with pytest.raises(Unfillable, match="grows over"):
        fill(content, make.recipient({"x": [1] * 1500, "y": "y" * 1000}), HEADERS)


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "(" * 500 + "x" + ")" * 500 + " }}",
        "{{ " + "not " * 3000 + "x }}",
        "{% for a in x %}" * 40 + "{% endfor %}" * 40,
        "{% if x %}" * 200 + "{% endif %}" * 200,
        "{{ x }}" * 6000,
        "{{ " + "9" * 5000 + " }}",
        "a" * (PART_CHARS_LIMIT + 1),
    ],
    ids=["brackets", "nots", "loops", "ifs", "fields", "digits", "length"],
)
def test_a_template_out_of_bounds_is_refused_when_saved(text: str):
    with pytest.raises(InvalidInput) as caught:
        make.content(text=text)
    assert caught.value.field == "text"


def _bomb(sign: str) -> str:
    pairs = [("'xxxxxxxxxx'", "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
    loops = [f"{{% for {name} in [{sign.join([inner] * 100)}] %}}" for inner, name in pairs]
    return "".join(loops) + "{{ e | length }}" + "{% endfor %}" * 5


@pytest.mark.parametrize(
    "bomb",
    [
        "{{ 1 | round(30000000, 'ceil') }}",
        "{{ x | round(30000000, 'ceil') }}",
        "{{ 5 | round(-30000000) }}",
        "{{ x | round(-30000000) }}",
        _bomb("~"),
        _bomb("+"),
        "{% for a in [[1] + [2]] %}{{ a | length }}{% endfor %}",
    ],
)
def test_no_template_grows_without_bound(bomb: str):
    begun = time.process_time()
    with pytest.raises((InvalidInput, Unfillable)):
        fill(make.content(subject="News", html=bomb, text="-"), make.recipient(values={"x": 3.5}), HEADERS)
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("field", "text"), [("subject", r"{{ '\n' }}x"), ("sender", r"{{ '\r\nBcc: x' }} <a@example.com>")]
)
def test_a_constant_that_no_header_can_hold_is_refused_when_saved(field: str, text: str):
    with pytest.raises(InvalidInput, match="line break") as caught:
        make.content(**{field: text})
    assert caught.value.field == field
