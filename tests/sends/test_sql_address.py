"""sendonce.address in SQL and console/audience/address.py in Python: one rule for addresses in ASCII."""

import re

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from console.audience.address import parse
from console.db import make_engine
from console.errors import InvalidInput

Judged = tuple[str, str] | str

_JUDGE = """
CREATE FUNCTION judged(given text) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT ARRAY[a.email, a.email_lower] FROM sendonce.address(given) AS a);
EXCEPTION WHEN SQLSTATE 'SO001' THEN
    RETURN NULL;
END $$
"""


@pytest.fixture(scope="module")
def connection(server_url: str, template: str):
    """A connection to one database for all examples; nothing is written to it."""
    name = f"{template}_addresses"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        url = make_engine(server_url).url.set(drivername="postgresql", database=name)
        with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as connection:
            connection.execute(_JUDGE)
            yield connection
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def by_sql(connection: psycopg.Connection, texts: list[str]) -> list[tuple[str, str] | None]:
    rows = connection.execute(
        "SELECT judged(t) FROM unnest(%s::text[]) WITH ORDINALITY AS u (t, n) ORDER BY n", (texts,)
    )
    return [tuple(row[0]) if row[0] else None for row in rows]


def by_python(text: str) -> tuple[str, str] | None:
    try:
        address = parse(text)
    except InvalidInput:
        return None
    return address.email, address.email_lower


_ENDS = st.text(st.sampled_from(" \t\r\n\x1f\x85\u00a0\u00ad\u200b\u200e\u202e\u2028\u2069\u3000\ufeff"), max_size=2)
_WILD = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=30)
_LOCAL = st.one_of(
    st.text(st.sampled_from("abzAZ019._+-!#$%&'*/=?^`{|}~"), min_size=0, max_size=12),
    st.sampled_from(["Info", "a" * 64, "a" * 65, "a..b", ".a", "a.", '"a b"', "a(b)", "Rita <rita"]),
)
_LABEL = st.one_of(
    st.text(st.sampled_from("abzABZ019-"), min_size=0, max_size=8),
    st.sampled_from(
        ["a" * 63, "a" * 64, "ab--c", "a-", "-a", "1", "TEST", "localhost", "local", "example", "com", "c-m"]
    ),
)
_DOMAIN = st.lists(_LABEL, min_size=0, max_size=4).map(".".join)
_ADDRESS = st.one_of(
    st.builds(lambda start, local, domain, end: f"{start}{local}@{domain}{end}", _ENDS, _LOCAL, _DOMAIN, _ENDS),
    st.builds("{}@{}.com".format, _LOCAL, _LABEL),
    _WILD,
    st.builds("{}@{}.example".format, _WILD, _WILD),
)


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(_ADDRESS, min_size=30, max_size=40))
def test_both_take_and_refuse_the_same_addresses_in_ascii(connection: psycopg.Connection, texts: list[str]) -> None:
    # A-labels are decoded by Python alone.
    asked = [text for text in texts if "xn--" not in text.lower()]
    for text, found in zip(asked, by_sql(connection, asked), strict=True):
        expected = by_python(text)
        assert (found and found[1]) == (expected and expected[1]), text
        # email-validator writes info@ and the like small, in addresses too long for the short way.
        if expected and len(text) <= 150:
            assert found == expected, text


@pytest.mark.parametrize(
    "text",
    [
        "rita@" + ".".join(["a" * 61] * 4) + ".com",
        "rita@" + ".".join(["a" * 60] * 3) + ".com",
        "r" * 64 + "@" + ".".join(["a" * 61] * 3) + ".ab",
        "r" * 64 + "@" + ".".join(["a" * 61] * 3) + ".abc",
        "r" * 64 + "@" + ".".join(["a" * 61] * 3) + ".abcd",
        "rita@\u212aex.com",
        "a\u037eb@example.com",
        "rita@example.com\x00"[:-1],
        "rita@EXAMPLE.test",
        "rita@test",
        "rita@a.onion",
        "rita@a.b.c.d.e.local",
        "rita@@example.com",
        "rita@example.com@example.com",
        "rita@example.com.",
        "rita@example..com",
        "rita@[127.0.0.1]",
        "rita@127.0.0.1",
        "rita",
        "@",
        "",
    ],
)
def test_both_judge_the_edges_alike(connection: psycopg.Connection, text: str) -> None:
    assert by_sql(connection, [text]) == [by_python(text)]


def test_an_a_label_is_one_address_by_sql_and_by_python(connection: psycopg.Connection) -> None:
    (found,) = by_sql(connection, ["Rita@XN--Mnchen-3ya.Example"])
    assert found == ("Rita@xn--mnchen-3ya.example", "rita@xn--mnchen-3ya.example")
    assert parse("Rita@münchen.example").email_lower == found[1]


@pytest.mark.parametrize(
    ("text", "hint"),
    [("rita@münchen.example", "A-label"), ("bücher@example.com", "HTTP API"), ("rita@exam ple.com", "one address")],
)
def test_a_refused_address_says_what_to_do(engine: Engine, text: str, hint: str) -> None:
    url = engine.url.render_as_string(hide_password=False).replace("+psycopg", "")
    with psycopg.connect(url) as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute("SELECT sendonce.address(%s)", (text,))
    assert (refused.value.sqlstate, refused.value.diag.column_name) == ("SO001", "recipient")
    assert re.search(hint, refused.value.diag.message_hint or "")


def test_lower_case_is_not_what_the_locale_of_the_database_makes_of_it(database_url: str) -> None:
    """In a Turkish one lower("I") is a dotless i, and an opt-out of INFO@ would be missed."""
    with psycopg.connect(database_url) as connection:
        body = connection.execute("SELECT prosrc FROM pg_proc WHERE proname = 'address'").fetchone()
        assert body is not None
        assert len(re.findall(r"lower\(", body[0])) == len(re.findall(r"COLLATE \"C\"\)", body[0]))
        found = connection.execute("SELECT email_lower FROM sendonce.address('INFO@IDEA.COM')").fetchone()
    assert found == ("info@idea.com",)
