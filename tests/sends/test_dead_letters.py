"""The list of dead letters: by error class, with its filters in the address."""

import re

import pytest
import visit
from settling import dead, doubtful, sql
from sqlalchemy import Engine, text


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def ids(page: str) -> list[int]:
    """The sends that have a box to tick, in order."""
    return [int(number) for number in re.findall(r'name="send_id" value="(\d+)"', page)]


def following(page: str) -> str | None:
    """The address of the next page."""
    return page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&") if 'rel="next"' in page else None


def _many(office: visit.Office, count: int, *, dead_every: int) -> None:
    """Adds sends that are sent, each so many-th a dead letter that was too old."""
    sql(
        office,
        """
        INSERT INTO sends (account_id, email, email_lower, lane, dedupe_key, status, message_id, correlation_id,
                           error_class)
        SELECT :account_id, 'x', 'x', 'bulk', 'k' || n, CASE WHEN n % :every = 0 THEN 'dead' ELSE 'sent' END, '<x>',
               'x', CASE WHEN n % :every = 0 THEN 'too-old' ELSE '' END
          FROM generate_series(1, :count) n
        """,
        account_id=office.account_id,
        count=count,
        every=dead_every,
    )


def test_dead_letters_are_grouped_by_error_class_with_the_reply(office: visit.Office) -> None:
    campaign_id = office.campaign("sending", name="Spring sale")
    old = dead(office, campaign_id, error_class="too-old", email="old@example.com")
    grey = [dead(office, campaign_id, email=f"g{n}@example.com") for n in range(2)]
    doubtful(office, campaign_id, email="doubt@example.com")
    office.send(campaign_id=campaign_id, status="failed", email="failed@example.com")
    answer = office.browser("oda").get("/sends/dead-letters")
    assert ids(answer.get_data(as_text=True)) == [*grey, old]
    shown = visit.words(answer)
    assert "All 451 4.7.1 at the recipient's address 2 Too old: its time ran out 1" in shown
    assert "gave up after 12 attempts; last: 451 4.7.1 Greylisted" in shown
    assert "Spring sale" in shown


def test_the_filters_stand_in_the_address(office: visit.Office) -> None:
    one, two = office.campaign("sending"), office.campaign("sending")
    grey = dead(office, one)
    old = dead(office, two, error_class="too-old")
    browser = office.browser("oda")
    for query, wanted in (
        ("class=too-old", [old]),
        (f"campaign={one}", [grey]),
        (f"class=too-old&campaign={one}", []),
        ("class=no-such-class", []),
    ):
        answer = browser.get(f"/sends/dead-letters?{query}")
        assert ids(answer.get_data(as_text=True)) == wanted, query
        if not wanted:
            assert "Show them all." in visit.words(answer)


@pytest.mark.parametrize("query", ["", "?class=451-4.7.1-rcpt", "?campaign=1"])
def test_pages_neither_repeat_nor_skip_a_row(office: visit.Office, query: str) -> None:
    campaign_id = office.campaign("sending")
    assert campaign_id == 1
    classes = ["451-4.7.1-rcpt"] if query.startswith("?class") else ["451-4.7.1-rcpt", "too-old", "worker-died"]
    rows = [
        dead(office, campaign_id, email=f"r{n}@example.com", error_class=classes[n % len(classes)]) for n in range(120)
    ]
    browser = office.browser("oda")
    path: str | None = f"/sends/dead-letters{query}"
    seen: list[int] = []
    while path:
        page = browser.get(path).get_data(as_text=True)
        seen += ids(page)
        path = following(page)
    assert sorted(seen) == rows


def test_a_class_of_very_many_is_not_counted_to_its_end(office: visit.Office) -> None:
    _many(office, 1100, dead_every=1)
    assert "Too old: its time ran out over 1,000" in visit.words(office.browser("oda").get("/sends/dead-letters"))


def test_an_empty_list_says_when_there_would_be_something(office: visit.Office) -> None:
    answer = office.browser("oda").get("/sends/dead-letters")
    assert "There is no dead letter." in visit.words(answer)
    assert "<button" not in answer.get_data(as_text=True).split("<h1>")[1]


@pytest.mark.parametrize("path", ["/sends/dead-letters", "/sends/in-doubt"])
@pytest.mark.parametrize("name", sorted(visit.PEOPLE))
def test_only_operators_and_admins_see_it_and_its_link(office: visit.Office, name: str, path: str) -> None:
    may = name in ("oda", "ada")
    browser = office.browser(name)
    answer = browser.get(path)
    assert answer.status_code == (200 if may else 403)
    if not may:
        assert "Only people with the role operator or admin" in visit.words(answer)
    assert (f'href="{path}"' in browser.get("/").get_data(as_text=True)) is may


@pytest.mark.parametrize("path", ["/sends/dead-letters", "/sends/in-doubt"])
def test_another_accounts_rows_are_not_among_them(office: visit.Office, path: str) -> None:
    other = visit.office(office.engine, slug="other", app=office.app)
    dead(other, email="theirs@example.com")
    doubtful(other, email="theirs@example.com")
    shown = visit.words(office.browser("ada").get(path))
    assert "theirs@example.com" not in shown
    assert "451" not in shown


@pytest.mark.parametrize(
    "query",
    [
        "after=x",
        "after=99999999999999999999~a",
        pytest.param(f"after={'9' * 5000}~a", id="long after"),
        "campaign=x",
        "campaign=0",
        pytest.param(f"campaign={'9' * 5000}", id="long campaign"),
    ],
)
def test_a_damaged_address_is_refused_with_words(office: visit.Office, query: str) -> None:
    answer = office.browser("oda").get(f"/sends/dead-letters?{query}")
    assert answer.status_code == 422


def test_replies_and_classes_that_look_like_html_are_shown_as_text(office: visit.Office) -> None:
    dead(office, error_class="<b>x</b>", provider_reply="<script>alert(1)</script>")
    page = office.browser("oda").get("/sends/dead-letters").get_data(as_text=True)
    assert "<script>alert" not in page
    assert "<b>x" not in page


def test_the_list_is_read_along_its_index(office: visit.Office) -> None:
    """However many sends there are: the plan names the index, not the table's other rows."""
    _many(office, 20_000, dead_every=100)
    with office.engine.begin() as connection:
        connection.execute(text("ANALYZE sends"))
        plan = "\n".join(
            connection.execute(
                text(
                    "EXPLAIN SELECT s.id FROM sends s WHERE s.account_id = :account_id AND s.exception = 'dead'"
                    " AND (s.error_class, s.id) > ('', 0) ORDER BY s.error_class, s.id LIMIT 51"
                ),
                {"account_id": office.account_id},
            ).scalars()
        )
    assert "sends_unsettled_idx" in plan
    assert "Sort" not in plan
