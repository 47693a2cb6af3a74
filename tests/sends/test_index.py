"""Search by recipient: characters are taken as they are, pages keep the question."""

import re
from urllib.parse import quote

import pytest
import visit
from sqlalchemy import Engine

STORED = ("ann+news", "annXnews", "k_t", "kxt", "50%off", "50xoff", "o'hara", "ann", "b\\s")


def _hits(page: str) -> set[str]:
    return {
        hit.replace("&#39;", "'").partition("@")[0] for hit in re.findall(r'class="address"[^>]*>([^<]+)</a>', page)
    }


@pytest.fixture
def one(engine: Engine) -> visit.Browser:
    office = visit.office(engine)
    for name in STORED:
        office.send(email=f"{name}@example.com", status="sent")
    return office.browser("sue")


@pytest.mark.parametrize(
    ("typed", "hits"),
    [
        ("ann+news@example.com", {"ann+news"}),
        ("k_t@", {"k_t"}),
        ("50%", {"50%off"}),
        ("%", {"50%off"}),
        ("_", {"k_t"}),
        ("o'hara", {"o'hara"}),
        ("Ann@Example.COM", {"ann"}),
        ("b\\s", {"b\\s"}),
        ("<script>", set()),
        (" ann@example.com ", {"ann"}),
        ("\u200bann@example.com\u00a0", {"ann"}),
        ("x" * 300, set()),
        ("ann", {"ann", "ann+news", "annXnews"}),
        ("ann@ex*", {"ann"}),
        ("ann*", {"ann", "ann+news", "annXnews"}),
        ("*", set()),
        ("@example.com", set(STORED)),
        ("a\x00nn", set()),
        ("\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), set()),
    ],
)
def test_every_character_stands_for_itself(one: visit.Browser, typed: str, hits: set[str]) -> None:
    """C75: through the form (a GET) and by URL, which are the same request."""
    answer = one.client.get("/sends/", query_string={"recipient": typed})
    assert answer.status_code == 200
    assert _hits(answer.get_data(as_text=True)) == hits


def test_an_empty_question_gives_the_newest(one: visit.Browser) -> None:
    """C75."""
    page = one.get("/sends/?recipient=").get_data(as_text=True)
    assert _hits(page) == set(STORED)
    assert page.index("b\\s@") < page.index("ann+news@")


def test_what_was_typed_is_shown_as_text(one: visit.Browser) -> None:
    """C75."""
    answer = one.client.get("/sends/", query_string={"recipient": "<script>alert(1)</script>"})
    assert "<script>alert" not in answer.get_data(as_text=True)
    assert "No message to <script>alert(1)</script>." in visit.words(answer)


def test_the_page_says_how_the_question_was_understood(one: visit.Browser) -> None:
    """C75: part, beginning or whole: stated on the page."""
    assert "to exactly ann@example.com" in visit.words(one.get("/sends/?recipient=ann@example.com"))
    assert "addresses that begin with ann, by address" in visit.words(one.get("/sends/?recipient=ann"))
    assert "with % anywhere in the address" in visit.words(one.get("/sends/?recipient=%25"))


@pytest.mark.parametrize("typed", ["50%", "a+b", "%", "off", "a&b=c#d"])
def test_the_link_to_the_second_page_keeps_the_question(engine: Engine, typed: str) -> None:
    """C75: %2B and %25 in the link, and no row twice or missing."""
    office = visit.office(engine)
    wanted = {office.send(email=f"{typed}{number:02}-{typed}@example.com") for number in range(70)}
    office.send(email="elsewhere@example.net")
    one = office.browser("sue")
    first = one.client.get("/sends/", query_string={"recipient": typed}).get_data(as_text=True)
    link = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert f"recipient={quote(typed, safe='')}" in link
    second = one.get(link).get_data(as_text=True)
    pages = [[int(number) for number in re.findall(r'href="/sends/(\d+)"', page)] for page in (first, second)]
    assert [len(page) for page in pages] == [50, 20]
    assert set(pages[0]) | set(pages[1]) == wanted


def test_a_damaged_cursor_is_refused_with_words(one: visit.Browser) -> None:
    for cursor in ("x", "9" * 5000, "-1", "99999999999999999999", "1~\x00", "~"):
        answer = one.client.get("/sends/", query_string={"recipient": "ann", "by": "prefix", "after": cursor})
        assert answer.status_code in {200, 422}, cursor
    answer = one.get("/sends/?after=x")
    assert answer.status_code == 422
    assert "Start again from the first page." in visit.words(answer)


def test_an_account_without_messages_is_told_what_to_do(engine: Engine) -> None:
    shown = visit.words(visit.office(engine).browser("sue").get("/sends/"))
    assert "Nothing has been sent yet." in shown
    assert "Go to the campaigns." in shown


def test_nobody_finds_the_messages_of_another_account(engine: Engine) -> None:
    office = visit.office(engine)
    other = visit.office(engine, slug="other", app=office.app)
    other.send(email="rita@example.com")
    one = office.browser("ada")
    for typed in ("rita@example.com", "rita", "ita", ""):
        assert not _hits(one.get(f"/sends/?recipient={typed}").get_data(as_text=True))
