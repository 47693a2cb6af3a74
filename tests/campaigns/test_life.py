"""The life of a campaign: every change from every state, who may make it, and what two at once do."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
import stage as stages
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from stage import Stage

from console.campaigns import fingerprint, store, ticks
from console.campaigns.states import STEPS, Change, State
from console.db import transaction
from console.errors import Conflict, Forbidden, InvalidInput, NotFound

BY_PEOPLE = (
    Change.EDIT, Change.SUBMIT, Change.APPROVE, Change.REJECT, Change.PAUSE, Change.RESUME, Change.CANCEL
)  # fmt: skip


@pytest.fixture
def stage(engine: Engine) -> Stage:
    return stages.stage(engine)


def at_once(*runs: Callable[[], Any]) -> list[Any]:
    """Runs all at the same moment; gives what each gave or raised."""
    results: list[Any] = [None] * len(runs)
    gate = threading.Barrier(len(runs))

    def run(place: int) -> None:
        gate.wait()
        try:
            results[place] = runs[place]()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("status", list(State))
@pytest.mark.parametrize("change", BY_PEOPLE)
def test_people_can_make_the_changes_of_the_table_and_no_others(stage: Stage, change: Change, status: State) -> None:
    campaign_id = stage.at(status)
    before = stage.row(campaign_id)
    if status in STEPS[change].sources:
        stage.do(change, campaign_id)
        assert stage.row(campaign_id).status == STEPS[change].target
        entries = stage.sql("SELECT action, object_id FROM audit_entries ORDER BY id DESC LIMIT 1")
        assert entries == [(f"campaign.{change}", str(campaign_id))]
    else:
        with pytest.raises(Conflict, match=f"Campaign {campaign_id} can't be "):
            stage.do(change, campaign_id)
        assert stage.row(campaign_id) == before


@pytest.mark.parametrize("status", list(State))
@pytest.mark.parametrize("change", [Change.START, Change.HOLD, Change.FINISH])
def test_ticks_make_the_changes_of_the_table_and_no_others(stage: Stage, change: Change, status: State) -> None:
    campaign_id = stage.at(status)
    stage.sql("UPDATE sends SET status = 'sent' WHERE campaign_id = :id", id=campaign_id)
    stage.sql("UPDATE campaign_counts SET sent = queued, queued = 0 WHERE campaign_id = :id", id=campaign_id)
    with transaction(stage.engine) as session:
        match change:
            case Change.START:
                moved = store.start_due(session)
            case Change.HOLD:
                moved = store.hold_late(session, late_limit_h=-1)
            case _:
                moved = store.finish_done(session)
    expected = status in STEPS[change].sources
    assert moved == ([(stage.account_id, campaign_id)] if expected else [])
    assert stage.row(campaign_id).status == (STEPS[change].target if expected else status)


def test_a_campaign_of_another_account_is_not_there(stage: Stage) -> None:
    campaign_id = stage.create()
    with transaction(stage.engine) as session:
        other = make.account(session, "other")
        boss_id = make.user(session, other, email="boss@example.com", roles=("admin",))
    stranger = Stage(stage.engine, other, boss_id, boss_id, stage.list_id, stage.settings)
    for change in BY_PEOPLE:
        with pytest.raises(NotFound):
            stranger.do(change, campaign_id)
    with pytest.raises(NotFound):
        stranger.create()
    assert stage.row(campaign_id).status == "draft"


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("marketer", {Change.EDIT, Change.SUBMIT, Change.PAUSE, Change.RESUME, Change.CANCEL}),
        ("approver", {Change.APPROVE, Change.REJECT, Change.PAUSE, Change.RESUME, Change.CANCEL}),
        ("operator", {Change.PAUSE, Change.RESUME, Change.CANCEL}),
        ("support", set()),
        ("admin", set(BY_PEOPLE)),
    ],
)
def test_each_role_may_do_its_part_and_no_more(stage: Stage, role: str, may: set[Change]) -> None:
    """C67 e, f: who may not approve can't, whatever the page."""
    with transaction(stage.engine) as session:
        user_id = make.user(session, stage.account_id, email="x@example.com", roles=(role,))
    for change in BY_PEOPLE:
        status = sorted(STEPS[change].sources)[0]
        campaign_id = stage.at(status)
        if change in may:
            stage.do(change, campaign_id, user_id=user_id)
        else:
            with pytest.raises(Forbidden, match="may not"):
                stage.do(change, campaign_id, user_id=user_id)
            assert stage.row(campaign_id).status == status
        stage.sql("UPDATE campaigns SET status = 'cancelled' WHERE id = :id", id=campaign_id)


def test_the_author_cannot_approve_even_as_an_admin_nor_by_sql(stage: Stage) -> None:
    """C67 e."""
    campaign_id = stage.at("submitted")
    stage.sql("UPDATE users SET roles = ARRAY['marketer','approver','admin'] WHERE id = :id", id=stage.author_id)
    with pytest.raises(Forbidden, match="somebody else has to approve"):
        stage.do("approve", campaign_id, user_id=stage.author_id)
    with pytest.raises(IntegrityError, match="campaigns_second_person_check"):
        stage.sql("UPDATE campaigns SET approver_id = author_id WHERE id = :id", id=campaign_id)
    with transaction(stage.engine) as session:
        columns = {
            "approver_id": stage.author_id, "fingerprint": stage.row(campaign_id).fingerprint,
            "scheduled_for": datetime.now(UTC), "schedule_zone": None, "approved_fingerprint": "x",
        }  # fmt: skip
        assert not store.approve(session, stage.account_id, campaign_id, columns=columns)


def test_who_edits_becomes_the_author_and_cannot_approve_then(stage: Stage) -> None:
    with transaction(stage.engine) as session:
        boss_id = make.user(session, stage.account_id, email="boss@example.com", roles=("admin",))
    campaign_id = stage.create()
    stage.do("edit", campaign_id, user_id=boss_id, draft=stage.draft(subject="The boss's own words"))
    stage.do("submit", campaign_id)
    with pytest.raises(Forbidden):
        stage.do("approve", campaign_id, user_id=boss_id)


def test_who_renames_it_does_not_become_the_author_so_the_author_still_cannot_approve(stage: Stage) -> None:
    stage.sql("UPDATE users SET roles = ARRAY['marketer','admin'] WHERE id = :id", id=stage.author_id)
    with transaction(stage.engine) as session:
        helper_id = make.user(session, stage.account_id, email="helper@example.com", roles=("marketer",))
    campaign_id = stage.create()
    stage.do("edit", campaign_id, user_id=helper_id, draft=stage.draft(name="Another name"))
    stage.do("submit", campaign_id)
    with pytest.raises(Forbidden, match="somebody else has to approve"):
        stage.do("approve", campaign_id, user_id=stage.author_id)


def test_the_author_may_approve_where_no_second_person_is_asked_for(stage: Stage) -> None:
    stage.sql("UPDATE accounts SET requires_second_person = false")
    stage.sql("UPDATE users SET roles = ARRAY['admin']")
    campaign_id = stage.at("submitted")
    stage.do("approve", campaign_id, user_id=stage.author_id)
    assert stage.row(campaign_id).approver_id == stage.author_id


def test_a_draft_is_held_to_its_form_with_the_field_and_line_named(stage: Stage) -> None:
    for changes, field, words in [
        ({"name": "  "}, "name", "name"),
        ({"subject": " "}, "subject", "subject"),
        ({"sender": "nobody"}, "sender", "sender"),
        ({"html": "<p>\n{{ first_name"}, "html", "line 2"),
    ]:
        with pytest.raises(InvalidInput, match=words) as refused:
            stage.create(**changes)
        assert refused.value.field == field
    with pytest.raises(NotFound, match="no list"):
        stage.create(list_id=10**9)
    assert stage.sql("SELECT count(*) FROM campaigns") == [(0,)]


def test_a_text_part_is_made_from_the_html_when_none_is_given(stage: Stage) -> None:
    assert "Hello {{ first_name }}" in stage.row(stage.create()).text
    assert stage.row(stage.create(text="Own words")).text == "Own words"


def test_a_list_with_nobody_to_mail_cannot_be_submitted(engine: Engine) -> None:
    stage = stages.stage(engine, emails=())
    campaign_id = stage.create()
    with pytest.raises(InvalidInput, match="no confirmed subscriber"):
        stage.do("submit", campaign_id)
    stages.fill(stage, 3)
    stage.sql("UPDATE subscribers SET status = 'unconfirmed'")
    with pytest.raises(InvalidInput, match="no confirmed subscriber"):
        stage.do("submit", campaign_id)
    stage.sql("UPDATE subscribers SET status = 'confirmed'")
    stage.do("submit", campaign_id)
    assert stage.row(campaign_id).audience_estimate == 3


def test_an_edit_voids_the_approval_and_makes_a_version_of_its_own(stage: Stage) -> None:
    """C67 a, c: what was changed after the approval is not sent when its time comes."""
    campaign_id = stage.approved(scheduled_for=datetime.now(UTC) + timedelta(minutes=10))
    stage.do("edit", campaign_id, draft=stage.draft(subject="Version two"))
    row = stage.row(campaign_id)
    assert (row.status, row.version, row.subject) == ("draft", 2, "Version two")
    assert (row.approver_id, row.approved_fingerprint, row.scheduled_for) == (None, None, None)
    assert ticks.start_due(stage.engine, stage.settings) == 0
    versions = stage.sql("SELECT version, subject FROM campaign_contents ORDER BY version")
    assert versions == [(1, "News for {{ first_name }}"), (2, "Version two")]


def test_content_is_frozen_once_sending_has_begun(stage: Stage) -> None:
    """C67 d."""
    campaign_id = stage.built()
    with pytest.raises(Conflict, match="it is being sent"):
        stage.do("edit", campaign_id, draft=stage.draft(subject="Version two"))
    assert stage.row(campaign_id).subject == "News for {{ first_name }}"


def test_an_approval_of_what_a_page_showed_before_an_edit_is_refused(stage: Stage) -> None:
    """C67 g."""
    campaign_id = stage.at("submitted")
    seen = stage.row(campaign_id).fingerprint
    stage.do("edit", campaign_id, draft=stage.draft(subject="Version two"))
    with pytest.raises(Conflict, match="it is a draft"):
        stage.do("approve", campaign_id, fingerprint=seen)
    stage.do("submit", campaign_id)
    for stale in (seen, ""):
        with pytest.raises(Conflict, match="changed since you opened this page"):
            stage.do("approve", campaign_id, fingerprint=stale)
    stage.do("approve", campaign_id, fingerprint=stage.row(campaign_id).fingerprint)


def test_content_that_was_changed_behind_the_consoles_back_is_not_approved(stage: Stage) -> None:
    campaign_id = stage.at("submitted")
    stage.sql("UPDATE campaign_contents SET html = 'something else'")
    with pytest.raises(Conflict, match="changed since"):
        stage.do("approve", campaign_id)


def test_a_submission_and_an_approval_are_of_one_version_even_between_look_and_change(stage: Stage) -> None:
    """The statement itself compares, for whoever edits in between."""
    campaign_id = stage.create()
    stage.do("edit", campaign_id)
    with transaction(stage.engine) as session:
        values = {"fingerprint": "of version one", "audience_estimate": 2}
        assert not store.submit(session, stage.account_id, campaign_id, version=1, **values)
        assert store.submit(session, stage.account_id, campaign_id, version=2, **values)
        columns = {
            "approver_id": stage.approver_id, "scheduled_for": datetime.now(UTC), "schedule_zone": None,
            "approved_fingerprint": "x",
        }  # fmt: skip
        for seen, is_done in (("of version two", False), ("of version one", True)):
            columns["fingerprint"] = seen
            assert store.approve(session, stage.account_id, campaign_id, columns=columns) == is_done


@pytest.mark.parametrize("changed", ["subject", "sender", "html", "text", "list_id"])
def test_the_fingerprint_covers_everything_that_is_sent(changed: str) -> None:
    content = {"subject": "a", "sender": "b", "html": "c", "text": "d", "list_id": 1}
    other = {**content, changed: 2 if changed == "list_id" else content[changed] + " "}
    assert fingerprint.of_content(**content) != fingerprint.of_content(**other)


def test_the_approvals_fingerprint_covers_person_and_time() -> None:
    at = datetime(2027, 1, 5, 9, tzinfo=UTC)
    one = fingerprint.of_approval(content="c", approver_id=1, scheduled_for=at)
    assert one != fingerprint.of_approval(content="c", approver_id=2, scheduled_for=at)
    assert one != fingerprint.of_approval(content="c", approver_id=1, scheduled_for=at + timedelta(seconds=1))


def test_a_time_in_the_past_means_now(stage: Stage) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    campaign_id = stage.approved(scheduled_for=datetime(2020, 1, 1, tzinfo=UTC))
    scheduled_for = stage.row(campaign_id).scheduled_for
    assert scheduled_for is not None
    assert before < scheduled_for <= datetime.now(UTC) + timedelta(seconds=1)


def test_a_rejection_takes_a_reason_and_keeps_it(stage: Stage) -> None:
    campaign_id = stage.at("submitted")
    with pytest.raises(InvalidInput, match="Say why"):
        stage.do("reject", campaign_id, reason="  ")
    stage.do("reject", campaign_id, reason="Too loud.")
    assert (stage.row(campaign_id).status, stage.row(campaign_id).note) == ("draft", "Too loud.")


def test_of_two_approvers_at_once_one_wins_and_the_other_is_told(stage: Stage) -> None:
    with transaction(stage.engine) as session:
        second_id = make.user(session, stage.account_id, email="ben@example.com", roles=("approver",))
    campaign_id = stage.at("submitted")
    results = at_once(
        lambda: stage.do("approve", campaign_id),
        lambda: stage.do("approve", campaign_id, user_id=second_id),
    )
    lost = [result for result in results if isinstance(result, Exception)]
    assert len(lost) == 1
    assert isinstance(lost[0], Conflict)
    assert "approved and waits for its time" in str(lost[0])
    winner = stage.approver_id if isinstance(results[0], datetime) else second_id
    assert stage.row(campaign_id).approver_id == winner
    assert stage.sql("SELECT count(*) FROM audit_entries WHERE action = 'campaign.approve'") == [(1,)]


@pytest.mark.parametrize("_round", range(3))
def test_an_edit_and_an_approval_at_once_never_approve_what_nobody_saw(stage: Stage, _round: int) -> None:
    """C67."""
    campaign_id = stage.at("submitted")
    seen = stage.row(campaign_id).fingerprint
    at_once(
        lambda: stage.do("edit", campaign_id, draft=stage.draft(subject="Version two")),
        lambda: stage.do("approve", campaign_id, fingerprint=seen),
    )
    row = stage.row(campaign_id)
    assert (row.status, row.version, row.approver_id) == ("draft", 2, None)
