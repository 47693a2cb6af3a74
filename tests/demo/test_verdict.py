"""The verdict names each way in which the promise can be broken, and only those."""

import pytest

from console.demo.verdict import Row, Verdict, judge

SENT = Row("a@example.com", "sent", "<a>")
DOUBT = Row("b@example.com", "in_doubt", "<b>")
FAILED = Row("c@example.com", "failed", "<c>")
ARRIVED = {("a@example.com", "<a>"): 1}


def _judge(*rows: Row, tally=None, expected: int | None = None, in_doubt_limit: int = 1, **counts: int) -> Verdict:
    kept = counts or {status: [row.status for row in rows].count(status) for status in {row.status for row in rows}}
    return judge(
        rows,
        expected=len(rows) if expected is None else expected,
        counts=kept,
        tally=tally,
        in_doubt_limit=in_doubt_limit,
    )


@pytest.mark.parametrize("tally", [ARRIVED, ARRIVED | {("b@example.com", "<b>"): 1}])
def test_a_message_in_doubt_may_have_arrived_or_not(tally: dict) -> None:
    verdict = _judge(SENT, DOUBT, FAILED, tally=tally)
    assert verdict.held
    assert (verdict.recipients, verdict.accepted, verdict.duplicates, verdict.lost) == (3, len(tally), 0, 0)
    assert (verdict.states["sent"], verdict.states["in_doubt"], verdict.states["queued"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([SENT], {"tally": {("a@example.com", "<a>"): 2}}, "more than once"),
        ([SENT], {"tally": ARRIVED | {("a@example.com", "<other>"): 1}}, "more than once"),
        ([SENT], {"tally": {}}, "got nothing"),
        ([SENT], {"tally": {("a@example.com", "<other>"): 1}}, "got nothing"),
        ([SENT], {"tally": ARRIVED | {("z@example.com", "<z>"): 1}}, "not in the ledger"),
        ([SENT, FAILED], {"tally": ARRIVED | {("c@example.com", "<c>"): 1}}, "was not sent"),
        ([SENT, DOUBT], {"tally": ARRIVED, "in_doubt_limit": 0}, "in doubt"),
        ([SENT], {"tally": ARRIVED, "expected": 2}, "1 rows for 2 addresses"),
        ([SENT], {"tally": ARRIVED, "sent": 2}, "counters differ"),
        ([SENT._replace(status="sending")], {"tally": {}}, "still queued or sending"),
        ([SENT._replace(status="queued")], {"tally": {}}, "still queued or sending"),
    ],
)
def test_each_broken_promise_has_its_sentence(rows: list[Row], options: dict, words: str) -> None:
    verdict = _judge(*rows, **options)
    assert not verdict.held
    assert any(words in sentence for sentence in verdict.broken), verdict.broken


def test_without_a_mailbox_the_ledger_alone_is_judged() -> None:
    verdict = _judge(SENT, DOUBT)
    assert verdict.held
    assert (verdict.accepted, verdict.duplicates, verdict.lost) == (None, None, None)
