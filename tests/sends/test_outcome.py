"""What a provider's report does: settles, stands beside the state, stops mail to addresses that are none."""

import itertools
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import make
import pytest
import stage as stages
from sqlalchemy import Engine, text
from stage import Stage

from console.db import transaction
from console.providers.names import names_of
from console.providers.reports import Bounce, Fact, Report
from console.sends import outcome, report_store
from console.sends.outcome import Noted, settle_reported

KEYS = itertools.count()


@pytest.fixture
def stage(engine: Engine) -> Stage:
    return stages.stage(engine)


def send(stage: Stage, status: str, **columns: object) -> int:
    with transaction(stage.engine) as session:
        return make.send(session, stage.account_id, status=status, **columns)  # type: ignore[arg-type]


def tag(stage: Stage, send_id: int) -> str:
    [row] = stage.sql("SELECT message_id FROM sends WHERE id = :id", id=send_id)
    return names_of(stage.account_id, send_id, row.message_id).tag


def tell(
    stage: Stage, send_id: int, fact: Fact = Fact.DELIVERED, *, key: str | None = None, **changes: object
) -> Noted:
    told = Report(fact=fact, tag=tag(stage, send_id), provider_id="pm-1", email="rita@example.com", text="250 ok")
    with transaction(stage.engine) as session:
        return outcome.report(
            session,
            stage.account_id,
            replace(told, **changes),  # type: ignore[arg-type]
            provider="main",
            event_key=key or f"k{next(KEYS)}",
        )


def state(stage: Stage, send_id: int) -> str:
    return stage.sql("SELECT status FROM sends WHERE id = :id", id=send_id)[0].status


def facts(stage: Stage) -> list[tuple]:
    return [tuple(row) for row in stage.sql("SELECT send_id, fact, is_open FROM provider_events ORDER BY id")]


def suppressions(stage: Stage) -> list[tuple]:
    return [tuple(row) for row in stage.sql("SELECT email_lower, kind, send_id FROM suppressions")]


@pytest.mark.parametrize("fact", list(Fact))
def test_whatever_a_provider_reports_of_a_message_proves_that_it_was_accepted(stage: Stage, fact: Fact) -> None:
    made = send(stage, "in_doubt", attempt_no=1, error_class="no-answer-end")
    assert tell(stage, made, fact).is_settled
    [row] = stage.sql(
        "SELECT status, provider_id, provider_reply, error_class, finished_at FROM sends WHERE id = :id", id=made
    )
    assert (row.status, row.provider_id, row.error_class) == ("sent", "pm-1", "")
    assert "main reported" in row.provider_reply
    assert row.finished_at is not None


@pytest.mark.parametrize("status", ["queued", "dead"])
def test_a_message_that_was_to_be_handed_over_again_is_not(stage: Stage, status: str) -> None:
    made = send(stage, status, attempt_no=1)
    assert tell(stage, made).is_settled
    assert state(stage, made) == "sent"


def test_a_message_that_was_never_tried_stays_queued(stage: Stage) -> None:
    made = send(stage, "queued", attempt_no=0)
    assert not tell(stage, made).is_settled
    assert state(stage, made) == "queued"


@pytest.mark.parametrize("status", ["sent", "failed", "cancelled", "suppressed", "expired"])
def test_a_final_state_stays_and_the_fact_stands_beside_it(stage: Stage, status: str) -> None:
    made = send(stage, status, attempt_no=1)
    noted = tell(stage, made)
    assert (noted.is_new, noted.is_settled) == (True, False)
    assert state(stage, made) == status
    assert facts(stage) == [(made, "delivered", False)]


def test_a_report_before_the_own_answer_waits_and_settles_when_the_answer_never_comes(stage: Stage) -> None:
    """The worker is killed between "accepted" and "marked as sent", and the provider was faster."""
    made = send(stage, "sending", attempt_no=1)
    assert not tell(stage, made, Fact.ACCEPTED).is_settled
    assert (state(stage, made), facts(stage)) == ("sending", [(made, "accepted", True)])
    assert settle_reported(stage.engine) == 0
    stage.sql("UPDATE sends SET status = 'in_doubt' WHERE id = :id", id=made)
    assert settle_reported(stage.engine) == 1
    assert (state(stage, made), facts(stage)) == ("sent", [(made, "accepted", False)])
    assert settle_reported(stage.engine) == 0


def test_a_report_before_the_own_answer_leaves_the_answer_alone(stage: Stage) -> None:
    made = send(stage, "sending", attempt_no=1)
    tell(stage, made)
    stage.sql("UPDATE sends SET status = 'sent', provider_reply = '250 own' WHERE id = :id", id=made)
    assert settle_reported(stage.engine) == 1
    [row] = stage.sql("SELECT status, provider_reply FROM sends WHERE id = :id", id=made)
    assert tuple(row) == ("sent", "250 own")
    assert facts(stage) == [(made, "delivered", False)]


def test_a_report_that_comes_again_does_nothing(stage: Stage) -> None:
    made = send(stage, "in_doubt", attempt_no=1)
    assert tell(stage, made, key="e1").is_new
    # A person has it sent again; a redelivery of the old report is no news.
    stage.sql("UPDATE sends SET status = 'in_doubt' WHERE id = :id", id=made)
    again = tell(stage, made, key="e1")
    assert (again.is_new, again.is_settled) == (False, False)
    assert state(stage, made) == "in_doubt"
    assert len(facts(stage)) == 1


def test_the_same_report_twenty_times_at_once_is_one_fact(stage: Stage) -> None:
    made = send(stage, "in_doubt", attempt_no=1, campaign_id=stage.started())
    gate, noted = threading.Barrier(8), []

    def run() -> None:
        gate.wait()
        noted.append(tell(stage, made, key="e1"))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.is_new for each in noted) == [False] * 7 + [True]
    assert sum(each.is_settled for each in noted) == 1
    assert len(facts(stage)) == 1


@pytest.mark.parametrize("order", list(itertools.permutations([Fact.ACCEPTED, Fact.DELIVERED, Fact.COMPLAINED])))
def test_any_order_leads_to_the_same(stage: Stage, order: tuple[Fact, ...]) -> None:
    made = send(stage, "in_doubt", attempt_no=1)
    for fact in order:
        tell(stage, made, fact)
    assert state(stage, made) == "sent"
    assert {row[1] for row in facts(stage)} == {"accepted", "delivered", "complained"}
    assert suppressions(stage) == [("rita@example.com", "complained", made)]


def test_the_worst_report_counts_in_each_of_all_orders(stage: Stage) -> None:
    """C55: deferred, delivered, bounced and complained about; a complaint ranks first, as nobody can take it away."""
    begun_at = datetime(2027, 3, 1, 10, 0, tzinfo=UTC)
    told = [(Fact.DEFERRED, 1), (Fact.DELIVERED, 5), (Fact.BOUNCED, 120), (Fact.COMPLAINED, 3600)]
    for number, order in enumerate(itertools.permutations(told)):
        email = f"hugo{number}@example.com"
        made = send(stage, "in_doubt", attempt_no=1, email=email)
        for fact, after_s in order:
            bounce = Bounce.HARD if fact is Fact.BOUNCED else None
            tell(stage, made, fact, bounce=bounce, email=email, happened_at=begun_at + timedelta(seconds=after_s))
        assert state(stage, made) == "sent"
        assert suppressions(stage)[number:] == [(email, "complained", made)], order
        with transaction(stage.engine) as session:
            shown = report_store.facts_of(session, stage.account_id, made)
        assert [each.fact for each in shown] == [fact.value for fact, _ in told], order


@pytest.mark.parametrize("status", ["in_doubt", "queued", "dead"])
def test_the_campaigns_counters_go_along(stage: Stage, status: str) -> None:
    campaign_id = stage.started()
    made = send(stage, status, attempt_no=1, campaign_id=campaign_id)
    before = stage.row(campaign_id).counts
    tell(stage, made)
    after = stage.row(campaign_id).counts
    assert (before[status], before["sent"]) == (1, 0)
    assert (after[status], after["sent"]) == (0, 1)


@pytest.mark.parametrize(
    ("bounce", "is_suppressed"),
    [(Bounce.HARD, True), (Bounce.SOFT, False), (Bounce.POLICY, False), (Bounce.OTHER, False)],
)
def test_only_an_address_that_there_is_not_stops_mail_to_it(stage: Stage, bounce: Bounce, is_suppressed: bool) -> None:
    made = send(stage, "sent", attempt_no=1, email="Rita@example.com")
    # The address is the send's own, whatever the report says.
    noted = tell(stage, made, Fact.BOUNCED, bounce=bounce, email="somebody.else@example.com")
    assert noted.is_suppressed is is_suppressed
    assert suppressions(stage) == ([("rita@example.com", "bounced", made)] if is_suppressed else [])


@pytest.mark.parametrize("fact", [Fact.ACCEPTED, Fact.DEFERRED, Fact.DELIVERED, Fact.OPENED, Fact.DROPPED])
def test_nothing_else_stops_mail(stage: Stage, fact: Fact) -> None:
    tell(stage, send(stage, "sent", attempt_no=1), fact)
    assert suppressions(stage) == []


def test_a_report_about_no_message_of_ours_is_kept_and_does_nothing(stage: Stage) -> None:
    made = send(stage, "in_doubt", attempt_no=1)
    right = tag(stage, made)
    forged = right[:-1] + ("0" if right[-1] != "0" else "1")
    for strange in ("", "newsletter", forged, f"so-{2**63}-0123456789abcdef", "so-999999-0123456789abcdef"):
        noted = tell(stage, made, Fact.COMPLAINED, tag=strange)
        assert (noted.is_new, noted.send_id) == (True, None)
    assert state(stage, made) == "in_doubt"
    assert suppressions(stage) == []
    assert {row[0] for row in facts(stage)} == {None}


def test_another_accounts_tag_leads_nowhere(stage: Stage, engine: Engine) -> None:
    made = send(stage, "in_doubt", attempt_no=1)
    told = Report(fact=Fact.DELIVERED, tag=tag(stage, made))
    with transaction(engine) as session:
        other = make.account(session, "other")
        assert outcome.report(session, other, told, provider="main", event_key="e1").send_id is None
    assert state(stage, made) == "in_doubt"


def test_facts_are_read_in_the_order_in_which_they_happened(stage: Stage) -> None:
    made = send(stage, "sent", attempt_no=1)
    tell(stage, made, Fact.BOUNCED, bounce=Bounce.SOFT)
    tell(stage, made, Fact.DELIVERED)
    with transaction(stage.engine) as session:
        listed = report_store.facts_of(session, stage.account_id, made)
    assert [(each.fact, each.bounce) for each in listed] == [("bounced", "soft"), ("delivered", None)]


def test_every_fact_and_class_can_be_kept(stage: Stage, engine: Engine) -> None:
    with engine.connect() as connection:
        checks = connection.execute(
            text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'provider_events'::regclass")
        ).scalars()
        words = " ".join(checks)
    assert all(f"'{value}'" in words for value in (*Fact, *Bounce))
