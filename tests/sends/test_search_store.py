"""The read queries: along an index, bounded, whatever states the rows are in."""

from collections.abc import Callable

import make
import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

from console.db import transaction
from console.errors import InvalidInput
from console.sends import search_store
from console.sends.search_store import Found

ROWS = 60_000


@pytest.fixture
def ledger(engine: Engine) -> tuple[Engine, int]:
    """60,000 rows in two campaigns: 1 queued but for a few, 2 sent but for a few; the account's id."""
    with transaction(engine) as session:
        account_id = make.account(session)
        author_id = make.user(session, account_id, roles=("admin",))
        list_id = make.mailing_list(session, account_id)
        for _ in range(2):
            make.campaign(session, account_id, author_id=author_id, list_id=list_id)
        session.execute(
            text(
                "INSERT INTO subscribers (account_id, email, email_lower) SELECT 1, a, a FROM"
                " (SELECT md5(g::text) || '@example.com' AS a FROM generate_series(1, :rows) g) x"
            ),
            {"rows": ROWS // 2},
        )
        session.execute(
            text(
                """
                INSERT INTO sends (account_id, campaign_id, subscriber_id, email, email_lower, lane, dedupe_key,
                                   message_id, correlation_id, status, claimed_by)
                SELECT 1, c, s.id, s.email, s.email_lower, 'bulk', c || ':' || s.id, '<x>', 'x',
                       CASE WHEN s.id % 5000 = 7 THEN 'in_doubt' WHEN s.id % 5000 = 8 THEN 'failed'
                            WHEN s.id % 5000 = 9 THEN 'sending' WHEN s.id = 29999 OR c = 2 THEN 'sent'
                            ELSE 'queued' END, 1
                  FROM generate_series(1, 2) c, subscribers s ORDER BY c, s.email_lower
                """
            )
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE sends"))
    return engine, account_id


def _buffers_of(engine: Engine, read: Callable[[Session], Found]) -> tuple[Found, int]:
    """Gives what was found, and the blocks that its statements touch: a measure that no busy machine changes."""
    statements: list[tuple[str, object]] = []

    def remember(_connection, _cursor, statement, parameters, *_) -> None:
        statements.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", remember)
    with transaction(engine) as session:
        found = read(session)
    event.remove(engine, "before_cursor_execute", remember)
    blocks = 0
    with engine.connect() as connection:
        for statement, parameters in statements:
            explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"
            plan = connection.exec_driver_sql(explain, parameters).scalar_one()[0]["Plan"]
            blocks += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return found, blocks


@pytest.mark.parametrize("status", [None, "queued", "sending", "failed", "in_doubt", "dead", "suppressed"])
def test_a_page_of_a_campaign_touches_few_blocks_in_every_state(ledger: tuple[Engine, int], status: str | None) -> None:
    engine, account_id = ledger
    for campaign_id in (1, 2):
        _, blocks = _buffers_of(
            engine,
            lambda session, c=campaign_id: search_store.page_of_campaign(session, account_id, c, status=status),
        )
        assert blocks < 400, campaign_id


def test_sent_rows_are_found_in_bounded_steps_however_few_they_are(
    ledger: tuple[Engine, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, account_id = ledger
    monkeypatch.setattr(search_store, "SCAN_ROWS", 1000)
    after, found, steps = None, [], 0
    while steps == 0 or after is not None:
        page, blocks = _buffers_of(
            engine,
            lambda session, a=after: search_store.page_of_campaign(session, account_id, 1, status="sent", after=a),
        )
        assert blocks < 6000
        assert page.looked_at in {1000, None}
        found += page.rows
        after = page.next_after
        steps += 1
    assert [row.status for row in found] == ["sent"]
    assert 25 <= steps <= 31


def test_walking_all_pages_gives_each_row_once(ledger: tuple[Engine, int]) -> None:
    engine, account_id = ledger
    for status in (None, "queued", "sent", "in_doubt"):
        seen: list[int] = []
        after = None
        with transaction(engine) as session:
            while True:
                page = search_store.page_of_campaign(session, account_id, 1, status=status, after=after, limit=5000)
                seen += [row.id for row in page.rows]
                after = page.next_after
                if after is None:
                    break
            condition = "" if status is None else f" AND status = '{status}'"
            wanted = session.scalars(text(f"SELECT id FROM sends WHERE campaign_id = 1{condition}")).all()
        assert sorted(seen) == sorted(wanted), status


def test_searching_touches_few_blocks_for_a_whole_address_a_beginning_and_the_newest(
    ledger: tuple[Engine, int],
) -> None:
    engine, account_id = ledger
    reads: list[Callable[[Session], Found]] = [
        lambda session: search_store.page_newest(session, account_id),
        lambda session: search_store.page_of_recipient(
            session, account_id, "c4ca4238a0b923820dcc509a6f75849b@example.com"
        ),
        lambda session: search_store.page_of_prefix(session, account_id, "c"),
        lambda session: search_store.page_of_prefix(session, account_id, "%"),
    ]
    for read in reads:
        _, blocks = _buffers_of(engine, read)
        assert blocks < 400


def test_a_part_that_is_nowhere_is_looked_for_in_bounded_steps(
    ledger: tuple[Engine, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, account_id = ledger
    monkeypatch.setattr(search_store, "SCAN_ROWS", 1000)
    page, blocks = _buffers_of(engine, lambda session: search_store.page_of_part(session, account_id, "zzz"))
    assert (page.rows, page.looked_at) == ([], 1000)
    assert page.next_after is not None
    assert blocks < 300


def test_no_query_counts_the_ledger(ledger: tuple[Engine, int]) -> None:
    engine, account_id = ledger
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2].lower()))
    with transaction(engine) as session:
        search_store.show_campaign(session, account_id, 1)
        search_store.page_of_campaign(session, account_id, 1)
        search_store.page_of_part(session, account_id, "zzz")
    assert statements
    assert not [statement for statement in statements if "count(" in statement]


def test_a_state_that_there_is_not_never_reaches_the_statement(engine: Engine) -> None:
    with transaction(engine) as session, pytest.raises(InvalidInput, match="is no state of a send"):
        search_store.page_of_campaign(session, 1, 1, status="sent' OR '1'='1")
