"""Which recipient and window an id leads to; never to another account's rows."""

from datetime import timedelta
from pathlib import Path

import doorway
import pytest
from scene import RITA, scene
from sqlalchemy import Engine

from console import clock
from console.db import transaction
from console.errors import InvalidInput, NotFound
from console.incidents import service


def test_every_id_leads_to_the_timeline_of_its_message(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with scene(engine, database_url, tmp_path) as at:
        at.asks("receipt:1001", correlation="click-1")
        campaign_id = at.at.stage.approved()
        with at.at.sending():
            at.at.wait_until_sent(campaign_id, timeout_s=60)
            at.at.wait_until(at.is_through)
        at.shop.office.send(email="other@example.com")
        with transaction(engine) as session:
            session.execute(
                doorway.text("UPDATE sends SET provider_id = 'prov-' || id WHERE email_lower = :e"), {"e": RITA}
            )
        sends = [each for each in at.shop.sends() if each.email_lower == RITA]
        assert len(sends) == 2
        for send in sends:
            for wanted in (str(send.id), send.message_id, send.provider_id, send.dedupe_key):
                assert at.timeline(wanted).recipient == RITA, wanted
        found = at.timeline("click-1")
        assert [each.send.id for each in found.copies] == sorted(each.id for each in sends)
        assert at.timeline(" Rita@Example.com ").recipient == RITA
        assert [each.send.message_type for each in at.timeline(message_type="campaign").copies] == ["campaign"]


def test_nothing_of_another_account_is_found(engine: Engine, database_url: str, tmp_path: Path) -> None:
    other = doorway.doorway(engine, "other")
    receipt = other.accept(correlation_id="c-1")
    with scene(engine, database_url, tmp_path) as at:
        for wanted in (str(receipt.id), receipt.message_id, receipt.dedupe_key, "c-1"):
            with pytest.raises(NotFound):
                at.timeline(wanted)
        found = at.timeline(RITA)
    assert (found.events, found.copies, found.verdict.cause) == ([], [], "never_accepted")


@pytest.mark.parametrize("wanted", ["", "x" * 501, "a\x00b"])
def test_what_can_be_no_id_is_refused(engine: Engine, wanted: str) -> None:
    made = doorway.doorway(engine)
    with transaction(engine) as session, pytest.raises(InvalidInput) as met:
        service.show(session, made.account_id, wanted)
    assert met.value.field == "recipient"


def test_a_window_that_ends_before_it_begins_or_is_too_long_is_refused(engine: Engine) -> None:
    made = doorway.doorway(engine)
    now = clock.now()
    for since, until, field in ((now, now - timedelta(1), "to"), (now - timedelta(100), now, "from")):
        with transaction(engine) as session, pytest.raises(InvalidInput) as met:
            service.show(session, made.account_id, RITA, since=since, until=until)
        assert met.value.field == field
