"""Filling: the message that a mail program finds in the bytes is the one that the content and the values make."""

import email
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from email import policy
from email.message import EmailMessage
from typing import cast

import make
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.content.compile import Compiled
from console.content.fill import fill
from console.content.source import Filled, Recipient, Unfillable

HEADERS = make.list_headers()


def message(filled: Filled) -> EmailMessage:
    return cast(EmailMessage, email.message_from_bytes(filled.wire, policy=policy.default))


def parts(filled: Filled) -> tuple[str, str]:
    """The text and the HTML part, decoded, with LF."""
    text, html = (
        cast(bytes, part.get_payload(decode=True)).decode().replace("\r\n", "\n")
        for part in message(filled).iter_parts()
    )
    return text, html


def filled(content: Compiled, **recipient) -> Filled:
    return fill(content, make.recipient(**recipient), HEADERS)


def check_wire(wire: bytes) -> None:
    assert wire.endswith(b"\r\n")
    assert b"\x00" not in wire
    assert not re.search(rb"\r(?!\n)|(?<!\r)\n", wire)
    assert all(len(line) <= 998 for line in wire.split(b"\r\n"))


def test_a_message_has_its_fields_and_both_parts():
    sent = filled(make.content())
    check_wire(sent.wire)
    read = message(sent)
    assert not read.defects
    assert dict(read.items()) == {
        "From": "Ann Lee <news@example.com>",
        "To": "rita@example.com",
        "Subject": "News for Rita",
        "Date": "Thu, 04 Mar 2027 05:06:07 +0000",
        "Message-ID": "<0123456789abcdef@mail.example.com>",
        "List-Unsubscribe": "<https://console.example.com/audience/unsubscribe/abc>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "List-Id": "<l1.t1.example.com>",
        "Feedback-ID": "7:t1:campaign:sendonce",
        "MIME-Version": "1.0",
        "Content-Type": read["Content-Type"],
    }
    assert [part.get_content_type() for part in read.iter_parts()] == ["text/plain", "text/html"]
    assert parts(sent) == ("Hello Rita\n", "<p>Hello Rita</p>")
    assert (sent.mail_from, sent.rcpt_to, sent.needs_smtputf8) == ("news@example.com", "rita@example.com", False)


def test_equal_arguments_give_equal_bytes():
    content = make.content(text="Zoë {{ first_name }}, {{ city | default('here') }}")
    assert filled(content).wire == filled(make.content(text="Zoë {{ first_name }}, {{ city | default('here') }}")).wire
    other = filled(content, message_id="<other@mail.example.com>")
    assert message(other).get_boundary() != message(filled(content)).get_boundary()


def test_the_same_moment_read_in_another_zone_gives_the_same_bytes():
    berlin = datetime(2027, 3, 4, 6, 6, 9, tzinfo=timezone(timedelta(hours=1)))
    wire = filled(make.content(), dated_at=berlin).wire
    assert b"\r\nDate: Thu, 04 Mar 2027 05:06:09 +0000\r\n" in wire
    assert wire == filled(make.content(), dated_at=berlin.astimezone(UTC)).wire


def test_a_date_without_a_zone_is_an_error_of_the_program():
    with pytest.raises(ValueError, match="time zone"):
        filled(make.content(), dated_at=datetime(2027, 3, 4))  # noqa: DTZ001


def test_the_unsubscribe_address_stands_on_one_line_as_it_is():
    url = "https://console.example.com/audience/unsubscribe/" + "aZ09-_=" * 40
    assert f"\r\nList-Unsubscribe: <{url}>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n".encode() in (
        filled(make.content(), unsubscribe_url=url).wire
    )
    assert b"List-Unsubscribe" not in filled(make.content(), unsubscribe_url=None).wire


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "mailto:x@example.com", "https://x/\r\nBcc: y", "https://x/>,<y"]
)
def test_an_unsubscribe_address_that_is_no_web_address_is_never_written(url: str):
    with pytest.raises(ValueError, match="List-Unsubscribe"):
        filled(make.content(), unsubscribe_url=url)


@pytest.mark.parametrize("message_id", ["<a@b>\r\nBcc: x@example.com", "a@b", "<a b@c>", "<ä@b>"])
def test_a_message_id_that_is_none_is_never_written(message_id: str):
    with pytest.raises(ValueError, match="Message-ID"):
        filled(make.content(), message_id=message_id)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"first_name": "Ann", "address": {"city": "Rome"}}, None),
        ({"first_name": None}, "missing first_name, address.city"),
        ({"first_name": "Bo", "address": {"city": "Oslo"}}, None),
        ({"first_name": "", "address": {"city": "Bern"}}, "missing first_name"),
        ({"first_name": " \u00a0", "address": {"city": "Bern"}}, "missing first_name"),
        ({"first_name": "Cy", "address": None}, "missing address.city"),
        ({"first_name": "Cy", "address": {}}, "missing address.city"),
        ({}, "missing first_name, address.city"),
    ],
)
def test_a_recipient_who_lacks_a_field_fails_alone_and_all_gaps_are_named(values: dict, reason: str | None):
    """C43 (policy: an empty or blank text counts as missing)"""
    line = "Hello {{ first_name }}, your city: {{ address.city }}."
    content = make.content(subject="News", html=f"<p>{line}</p>", text=line)
    if reason:
        with pytest.raises(Unfillable) as caught:
            filled(content, values=values)
        assert caught.value.reason == reason
    else:
        expected = f"Hello {values['first_name']}, your city: {values['address']['city']}."
        assert parts(filled(content, values=values)) == (expected, f"<p>{expected}</p>")


def test_gaps_of_all_parts_are_named_once():
    content = make.content(
        subject="{{ a }}", sender="{{ b }} <n@example.com>", text="{{ a }}{{ c.d.e }}", html="{{ f }}"
    )
    with pytest.raises(Unfillable, match=r"^missing b, a, c\.d\.e, f$"):
        filled(content, values={"c": {"d": None}})


@pytest.mark.parametrize("value", [None, "", "  "])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ x | default('friend') }}", "friend"),
        ("{{ x | d('friend') | upper }}", "FRIEND"),
        ("{{ x or 'friend' }}", "friend"),
        ("{% if x %}Dear {{ x }}{% else %}Hello{% endif %}", "Hello"),
        ("{{ x if x else 'friend' }}", "friend"),
        ("a{{ x if x }}b", "ab"),
        ("{% if x is defined %}yes{% else %}no{% endif %}", "no"),
        ("{% if x is none %}none{% endif %}", "none"),
        ("{% if x == 'gold' %}gold{% else %}plain{% endif %}", "plain"),
        ("{{ x.y | default('friend') }}", "friend"),
        ("{% for each in x | default([]) %}{{ each }}{% else %}nothing{% endfor %}", "nothing"),
        ("{{ x | default(y) | default('friend') }}", "friend"),
    ],
)
def test_a_fallback_of_the_template_stands_in_for_a_gap(text: str, expected: str, value: str | None):
    """C43"""
    content = make.content(subject="News", html="-", text=text)
    assert parts(filled(content, values={"x": value}))[0] == expected
    assert parts(filled(content, values={}))[0] == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{ x }}",
        "{{ x | upper }}",
        "{{ 'Dear ' ~ x }}",
        "{{ x + 'a' }}",
        "{{ x | length }}",
        "{{ x | first }}",
        "{% if x > 3 %}{% endif %}",
        "{% for each in x %}{% endfor %}",
        "{{ x | truncate(9) }}",
        "{{ x | join(', ') }}",
        "{{ x | round(2) }}",
        "{{ x | int }}",
        "{{ x | urlencode }}",
        "{{ -x }}",
        "{{ x | default(x) }}",
    ],
)
def test_every_way_to_use_a_gap_is_noticed(text: str):
    """C43"""
    with pytest.raises(Unfillable, match=r"^missing x$"):
        filled(make.content(subject="News", html="-", text=text), values={"x": None})


def test_values_are_shown_as_people_write_them():
    text = (
        "{{ n }} {{ f }} {{ zero }} {{ yes }} {{ no }} {{ list | join(', ') }} {{ list[0] }} {{ list | last }}"
        " {% for each in rows %}{{ loop.index }}{{ each.name }}{% endfor %}"
    )
    values = {"n": 3, "f": 1.5, "zero": 0, "yes": True, "no": False, "list": ["a", "b"], "rows": [{"name": "x"}]}
    sent = filled(make.content(subject="News", html="-", text=text), values=values)
    assert parts(sent)[0] == "3 1.5 0 true false a, b a b 1x"


@pytest.mark.parametrize("text", ["{{ x }}", "{{ x | upper }}", "{{ 'a' ~ x }}"])
@pytest.mark.parametrize("value", [{"a": 1}, ["a"]])
def test_a_group_of_values_is_not_printed(text: str, value: object):
    with pytest.raises(Unfillable, match=r"^its values don't fit the template: x is a"):
        filled(make.content(subject="News", html="-", text=text), values={"x": value})


def test_values_that_break_the_template_fail_with_the_reason():
    with pytest.raises(Unfillable, match=r"^its values don't fit the template: .*for numbers"):
        filled(make.content(subject="News", html="-", text="{{ x + 1 }}"), values={"x": "a"})


def test_html_in_a_value_is_escaped_in_the_html_part_only():
    content = make.content(
        subject="{{ x }}",
        html="<a title=\"{{ x }}\">{{ x }} {{ 'a&b' }} {{ x | urlencode }} {{ x | default('') | upper }}</a>",
        text="{{ x }}",
    )
    sent = filled(content, values={"x": "<b> & \"q\" 'r'"})
    text, html = parts(sent)
    assert text == message(sent)["Subject"] == "<b> & \"q\" 'r'"
    assert html == (
        '<a title="&lt;b&gt; &amp; &quot;q&quot; &#x27;r&#x27;">&lt;b&gt; &amp; &quot;q&quot; &#x27;r&#x27; a&amp;b'
        " %3Cb%3E%20%26%20%22q%22%20%27r%27 &lt;B&gt; &amp; &quot;Q&quot; &#x27;R&#x27;</a>"
    )


@pytest.mark.parametrize(
    ("value", "trouble"),
    [
        ("Ann\r\nBcc: spy@example.com", "line break"),
        ("Bo\nX-Injected: 1", "line break"),
        ("Cy\u2028Dee\x85F\x0cG", "line break"),
        ("D\x00E", "control character"),
    ],
)
def test_a_value_with_a_line_break_is_refused_in_a_header_and_harmless_in_a_body(value: str, trouble: str):
    """C35 (policy: refused, naming the field)"""
    reason = f"^bad header value in first_name: {trouble}$"
    with pytest.raises(Unfillable, match=reason):
        filled(make.content(), values={"first_name": value})
    with pytest.raises(Unfillable, match=reason):
        filled(make.content(subject="News", sender="{{ first_name }} <n@example.com>"), values={"first_name": value})
    sent = filled(make.content(subject="News", html="{{ first_name }}"), values={"first_name": value})
    check_wire(sent.wire)
    names = [line.partition(b":")[0] for line in sent.wire.partition(b"\r\n\r\n")[0].split(b"\r\n")]
    assert b"Bcc" not in names
    assert b"X-Injected" not in names
    assert parts(sent)[0] == f"Hello {value}\n".replace("\r\n", "\n")


def test_the_field_with_the_line_break_is_named_by_its_path():
    """C35"""
    with pytest.raises(Unfillable, match=r"^bad header value in a\.b\.0: line break$"):
        filled(
            make.content(subject="{{ c }} {{ a.b[0] }}"), values={"a": {"b": ["x\ny"]}, "c": "ok", "first_name": "x"}
        )


def test_eve_gets_her_mail():
    """C35, h5"""
    assert message(filled(make.content(), values={"first_name": "Eve"}))["Subject"] == "News for Eve"


@pytest.mark.parametrize(
    "address",
    [
        "h6@example.com>\r\nRCPT TO:<spy@example.com",
        "a b@example.com",
        "a@b@c",
        "a@",
        "@b",
        "a@b\n",
        "a@b\x00",
        "<a@b>",
        "a,b@c",
        "a@b\u2028",
        "x" * 65 + "@example.com",
    ],
)
def test_an_address_that_could_break_out_of_its_place_is_refused(address: str):
    """C35, h6"""
    with pytest.raises(Unfillable, match="address"):
        filled(make.content(), email=address)


def test_a_domain_becomes_its_a_label_and_a_local_part_needs_smtputf8():
    sent = filled(make.content(), email="info@bücher.example.com")
    assert (sent.rcpt_to, sent.needs_smtputf8) == ("info@xn--bcher-kva.example.com", False)
    assert sent.wire.isascii()
    sent = filled(make.content(), email="josé@example.com")
    assert (sent.rcpt_to, sent.needs_smtputf8) == ("josé@example.com", True)
    assert "\r\nTo: josé@example.com\r\n".encode() in sent.wire
    assert filled(make.content(sender="josé@example.com")).needs_smtputf8


def test_a_sender_name_may_hold_a_merge_field():
    content = make.content(sender='"{{ clerk }}, our shop" <news@example.com>')
    sent = filled(content, values={"first_name": "x", "clerk": 'Zoë "Z"'})
    assert message(sent)["From"].addresses[0].display_name == 'Zoë "Z", our shop'
    assert sent.mail_from == "news@example.com"


def test_the_body_survives_the_wire():
    """C36"""
    lines = ["start", ".", "..two", ".three", "https://example.com/?k=" + "a" * 1470, "ÄÖ€"]
    text = "\r\n".join(lines[:2]) + "\n" + "\r".join(lines[2:])
    html = "<p>" + "x" * 2990 + "</p>"
    for content, values in (
        (make.content(text=text, html=html), {"first_name": "x"}),
        (
            make.content(text="{{ text }}", html=html.replace("xx", "{{ first_name }}")),
            {"first_name": "xx", "text": text},
        ),
    ):
        sent = filled(content, values=values)
        check_wire(sent.wire)
        assert parts(sent) == ("\n".join(lines), html)


@given(
    value=st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=80).filter(
        lambda text: not text.isspace()
    )
)
def test_any_value_comes_back_from_both_bodies(value: str):
    sent = filled(BOTH_BODIES, values={"v": value})
    check_wire(sent.wire)
    plain = re.sub("\r\n|\r", "\n", value)
    assert parts(sent) == (f"<{plain}>", plain.translate(ESCAPES))


BOTH_BODIES = make.content(subject="News", text="<{{ v }}>", html="{{ v }}")
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def test_half_a_character_fails_its_recipient_only():
    for content in (make.content(text="-", html="-"), make.content(subject="News")):
        with pytest.raises(Unfillable):
            filled(content, values={"first_name": "a\ud800"})
    with pytest.raises(Unfillable):
        filled(make.content(), email="a\ud800@example.com")


def test_a_subject_that_turns_out_empty_is_refused():
    with pytest.raises(Unfillable, match="subject is empty"):
        filled(make.content(subject="{% if x %}Hello{% endif %} "))


def test_a_gap_is_named_before_anything_else_that_is_wrong():
    """C43"""
    content = make.content(subject="{{ first_name }}", text="{{ city }}")
    with pytest.raises(Unfillable, match=r"^missing city$"):
        filled(content, values={"first_name": "a\nb"})


def test_everyone_gets_their_own_copy():
    """C46: 50 recipients by 8 threads"""
    body = "{{ first_name }} {{ email }} {{ unsubscribe_url }}"
    content = make.content(subject="For {{ first_name }}", text=body, html=f"<p>{body}</p>")
    people: list[Recipient] = [
        make.recipient(
            {"first_name": f"N{number:02}"},
            email=f"r{number:02}@example.com",
            message_id=f"<{number:02}@mail.example.com>",
            unsubscribe_url=f"https://console.example.com/u/t{number:02}",
        )
        for number in range(1, 51)
    ]
    with ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda person: fill(content, person, HEADERS), people * 20))
    for number, one in enumerate(sent):
        mark = f"{number % 50 + 1:02}"
        text, html = parts(one)
        assert text == f"N{mark} r{mark}@example.com https://console.example.com/u/t{mark}"
        assert html == f"<p>{text}</p>"
        assert message(one)["Subject"] == f"For N{mark}"
        assert message(one)["List-Unsubscribe"] == f"<https://console.example.com/u/t{mark}>"
        assert one.rcpt_to == f"r{mark}@example.com"


def test_a_value_of_one_recipient_is_not_kept_for_the_next():
    """C46"""
    content = make.content(text="{{ first_name or 'friend' }}", subject="News", html="-")
    person = make.recipient({"first_name": "Ann"})
    assert parts(fill(content, person, HEADERS))[0] == "Ann"
    assert parts(fill(content, replace(person, values={}), HEADERS))[0] == "friend"


def test_a_subject_from_a_huge_value_is_refused():
    with pytest.raises(Unfillable, match="longer than 2,000"):
        filled(make.content(), values={"first_name": "a" * 3000})


def test_the_date_is_the_recipients_own():
    """The field's bytes are kept for the moment that they show, not for another one."""
    later = datetime(2027, 3, 4, 5, 6, 8, tzinfo=UTC)
    assert b"05:06:08 +0000" in filled(make.content(), dated_at=later).wire
    assert b"05:06:07 +0000" in filled(make.content()).wire


@pytest.mark.parametrize("text", ["{{ x | truncate(2) }}", "{{ 1e999 | int }}", "{{ x | truncate('a') }}"])
def test_whatever_a_template_raises_is_its_recipients_failure(text: str):
    with pytest.raises(Unfillable):
        filled(make.content(subject="News", html=text, text="-"), values={"x": "a long text indeed"})


def test_truncate_cuts_a_text():
    sent = filled(make.content(subject="News", html="-", text="{{ x | truncate(10) }}"), values={"x": "word " * 9})
    assert parts(sent)[0].strip() == "word..."
