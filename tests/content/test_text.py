"""The text part that is made from an HTML part."""

import time

import make
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.content.text import text_from_html


def test_merge_fields_and_blocks_survive_untouched():
    marks = [
        "{{ first_name | default('my_friend <b> *x*') }}",
        "{% if a > 3 and b < 4 %}",
        "{{ a\n | upper }}",
        "{% endif %}",
        "{# <p>a note</p> #}",
    ]
    text = text_from_html("<p>" + "</p><p>".join(marks) + "</p>")
    assert text == "\n\n".join(marks) + "\n"


def test_links_keep_their_addresses():
    html = (
        "<p>Please <a href='https://example.com/a_(b)?c={{ d }}&amp;e=1'>look_here {{ x }}</a>, or"
        " <a href='{{ unsubscribe_url }}'>leave</a>. <a href='#top'>Up</a>"
        " <a href='https://example.com'>https://example.com</a></p>"
    )
    assert text_from_html(html) == (
        "Please look_here {{ x }} <https://example.com/a_(b)?c={{ d }}&e=1>, or leave <{{ unsubscribe_url }}>. Up"
        " https://example.com\n"
    )


def test_the_text_is_for_people_not_for_a_markdown_reader():
    html = "<style>p { color: red }</style><p>- a_b *c* [d]</p><p>1. e</p><ul><li>f</li></ul><img src='x' alt='g [h]'>"
    assert text_from_html(html) == "- a_b *c* [d]\n\n1. e\n\n  * f\n\ng [h]\n"


def test_long_lines_are_not_wrapped():
    assert text_from_html("<p>" + "word " * 50 + "</p>") == ("word " * 50).strip() + "\n"


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60), st.sampled_from(["{{ a }}", "{% if b %}", ""]))
def test_no_html_is_too_broken_to_read(junk: str, mark: str):
    text = text_from_html(f"<p>{mark}</p>{junk}")
    assert text.startswith(mark)


def test_the_text_compiles_when_the_html_does():
    html = "<table><tr><td>{% for each in items %}<b>{{ each.name }}</b>{% endfor %}</td></tr></table>"
    assert make.content(subject="News", html=html, text="").fields == ("items",)


@pytest.mark.parametrize("junk", ["A", "\n", "&", "<", "<a href='", "<!--", "{{", "<p>a</p>", "<style>", " "])
def test_a_hundred_kilobytes_of_anything_are_read_in_a_second(junk: str):
    begun = time.process_time()
    text_from_html(junk * (100_000 // len(junk)))
    assert time.process_time() - begun < 10  # a second on an idle machine


def test_of_a_very_long_part_the_text_and_the_fields_are_kept():
    html = "<style>p {}</style><p>Hello&nbsp;{{ first_name }}</p>\n" * 3_000
    assert text_from_html(html).split("\n")[0] == "Hello\xa0{{ first_name }}"
