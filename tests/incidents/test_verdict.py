"""Thirty incidents, made by really running the system, get the right verdict; and no row can be hidden unseen."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from incidents.plays import INCIDENTS
from scene import as_json, copies_of, scene
from sqlalchemy import Engine

from console.db import transaction
from console.incidents import service, store, words
from console.incidents.evidence import Evidence

ROWS = ("asked", "enqueued", "tried", "decided", "came", "redelivered", "reported")


def test_there_are_thirty_incidents_and_two_for_each_cause() -> None:
    causes = Counter(each.cause for each in INCIDENTS.values())
    assert len(INCIDENTS) >= 30
    assert causes.keys() == words.CAUSES.keys()
    assert min(causes.values()) >= 2


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_verdict_names_the_cause_and_hiding_any_row_shows(
    name: str, engine: Engine, database_url: str, tmp_path: Path
) -> None:
    incident = INCIDENTS[name]
    with scene(engine, database_url, tmp_path, *incident.script) as at:
        incident.play(at)
        found = at.timeline(incident.wanted)
        document = as_json(found)
        assert document["verdict"]["cause"] == incident.cause, found.text()
        assert document["verdict"]["decided"] is (incident.cause != "undecided")
        assert document["verdict"]["evidence"]
        assert copies_of(at.sink) == incident.copies
        # What the records say was accepted is what the server took, but for what it left unanswered.
        doubt_count = sum(each.doubt_count for each in found.copies)
        assert found.answers.accepts == incident.copies - doubt_count
        with transaction(engine) as session:
            rows = store.evidence(
                session, at.shop.office.account_id, found.recipient, since=found.start, until=found.end
            )
    _check_that_nothing_can_be_hidden(rows)


def _check_that_nothing_can_be_hidden(rows: Evidence) -> None:
    """Without any one of its rows the timeline reads otherwise, whether or not its verdict still decides."""
    whole = service.made(rows)
    sentences = [each.text for each in whole.events]
    for kind in ROWS:
        for hidden in getattr(rows, kind):
            left = service.made(replace(rows, **{kind: [each for each in getattr(rows, kind) if each is not hidden]}))
            assert [each.text for each in left.events] != sentences, hidden
