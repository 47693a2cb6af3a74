"""The state table, and that all SQL that writes `status` obeys it."""

import re

import pytest

from console.campaigns import states as campaign_states
from console.dispatch import doubt_store, recorder, store
from console.sends import report_store, settle_store
from console.sends.states import FINAL, STEPS, Change, State

ALLOWED = {(source, step.target) for step in STEPS.values() for source in step.sources}


def test_every_state_can_be_reached_and_final_ones_can_be_left_only_by_people() -> None:
    targets = {step.target for step in STEPS.values()}
    assert targets == set(State)
    leaving = {change for change, step in STEPS.items() if step.sources & FINAL}
    assert leaving <= {Change.REVIVE}


def test_nothing_goes_from_in_doubt_to_sending() -> None:
    """A row in doubt is never claimed: it has to be settled first."""
    assert (State.IN_DOUBT, State.SENDING) not in ALLOWED


STATEMENTS = {
    "claim": (recorder.CLAIM.text, State.QUEUED, {"suppressed", "expired", "dead", "sending"}),
    "claim_lane": (recorder.CLAIM_LANE.text, State.QUEUED, {"suppressed", "expired", "dead", "sending"}),
    "release": (store._RELEASE, State.SENDING, {"suppressed", "cancelled", "queued"}),
    "recover": (store._RECOVER, State.SENDING, {"dead", "queued", "in_doubt"}),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_literals_of_each_statement_stand_in_the_table(name: str) -> None:
    text, source, expected = STATEMENTS[name]
    update = text[text.index("SET status = CASE") :]
    targets = set(re.findall(r"(?:THEN|ELSE) '(\w+)'", update[: update.index("END,")]))
    assert targets - {"hold"} == expected
    assert f"s.status = '{source}'" in text
    assert {(source, State(target)) for target in targets} <= ALLOWED


def test_outcomes_lead_only_where_the_table_allows() -> None:
    """RECORD and the late settlement take the state as a value: each that dispatch gives must be allowed."""
    given = {State.SENT, State.FAILED, State.QUEUED, State.IN_DOUBT, State.DEAD}
    assert {(State.SENDING, state) for state in given} <= ALLOWED
    assert {(State.IN_DOUBT, state) for state in given - {State.IN_DOUBT}} <= ALLOWED
    assert "s.status = 'sending' AND s.claimed_by = o.worker_id" in recorder.RECORD.text
    assert "s.status = 'in_doubt' AND s.claimed_by = " in store._SETTLE_LATE


@pytest.mark.parametrize("change", list(settle_store.SOURCES))
def test_what_people_settle_goes_from_where_and_to_where_the_table_says(change: Change) -> None:
    text, source = settle_store.MOVES[change], settle_store.SOURCES[change]
    assert source in STEPS[change].sources
    assert re.findall(r"s\.status = '(\w+)'", text) == [source, source]
    assert re.findall(r"UPDATE sends s SET status = '(\w+)'", text) == [STEPS[change].target]
    reopens = re.findall(r"UPDATE campaigns c SET status = '(\w+)'.*?c\.status = '(\w+)'", text, re.DOTALL)
    step = campaign_states.STEPS[campaign_states.Change.REOPEN]
    assert {(campaign_states.State(before), after) for after, before in reopens} <= {
        (before, step.target) for before in step.sources
    }
    assert bool(reopens) is (STEPS[change].target is State.QUEUED)


def test_all_that_people_may_settle_can_be_settled() -> None:
    assert set(settle_store.SOURCES) == {change for change in Change if change.startswith("settle")} | {Change.REVIVE}


def test_a_report_moves_from_where_and_to_where_the_table_says() -> None:
    step = STEPS[Change.REPORT]
    assert set(re.findall(r"'(in_doubt|queued|dead|sending|failed)'", report_store.SETTLE)) == set(step.sources)
    assert re.findall(r"SET status = '(\w+)'", report_store.SETTLE) == [step.target]


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        (doubt_store.QUEUE_AGAIN, Change.SETTLE_RESEND),
        (doubt_store.DOUBT_AGAIN, Change.DOUBT),
        (doubt_store.SETTLE_FOUND, Change.ACCEPT),
    ],
)
def test_what_is_settled_without_a_person_goes_from_where_and_to_where_the_table_says(
    statement: str, change: Change
) -> None:
    [source] = re.findall(r"s\.status = '(\w+)'", statement)
    [target] = re.findall(r"UPDATE sends s\s+SET status = '(\w+)'", statement)
    assert source in STEPS[change].sources
    assert target == STEPS[change].target
