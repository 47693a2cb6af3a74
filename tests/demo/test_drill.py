"""The drill can be repeated by its seed, keeps away from others' mail, and has an exit code for scripts."""

import json
import os
import subprocess
from pathlib import Path

import make
import pytest
from sqlalchemy import Engine

from console.db import transaction
from console.demo import place, store
from console.demo.children import sendonce
from console.demo.drill import Plan, moments, people
from console.errors import Conflict, SendonceError


def test_the_same_seed_draws_the_same_moments_and_people() -> None:
    plan = Plan(recipients=50, kills=4, freezes=3, seed=7)
    drawn = moments(plan)
    assert drawn == moments(plan)
    assert drawn != moments(Plan(recipients=50, kills=4, freezes=3, seed=8))
    assert [moment.share for moment in drawn] == sorted(moment.share for moment in drawn)
    assert sorted(moment.action for moment in drawn) == ["freeze"] * 3 + ["kill"] * 4
    assert {moment.place for moment in drawn} <= {0, 1}
    made = list(people(50, seed=7))
    assert made == list(people(50, seed=7))
    assert len({email for email, _ in made}) == 50


@pytest.mark.parametrize("status", ["approved", "sending"])
def test_a_drill_keeps_off_a_database_where_others_are_about_to_send(engine: Engine, status: str) -> None:
    with transaction(engine) as session:
        account_id = make.account(session)
        author_id = make.user(session, account_id, email="mia@example.com", roles=("marketer",))
        approver_id = make.user(session, account_id, email="abe@example.com", roles=("approver",))
        list_id = make.mailing_list(session, account_id)
        campaign_id = make.campaign(
            session, account_id, author_id=author_id, list_id=list_id, status=status, approver_id=approver_id,
            approved_fingerprint="f", scheduled_for="2027-01-01T00:00Z",
        )  # fmt: skip
        with pytest.raises(SendonceError, match=f"acme/{campaign_id}"):
            place.require_quiet(store.moving_campaigns(session), 0)


def test_a_drill_keeps_off_a_database_with_workers_of_its_own() -> None:
    place.require_quiet([], 0)
    with pytest.raises(SendonceError, match="2 sending threads"):
        place.require_quiet([], 2)


def test_one_at_a_time_plays_in_a_folder(tmp_path: Path, database_url: str) -> None:
    environ = {"SENDONCE_DATA_DIR": str(tmp_path), "SENDONCE_DATABASE_URL": database_url}
    with place.own_place("drill", environ=environ, overrides={}, is_embedded=False) as first:
        assert first.settings.data_dir == tmp_path / "drill"
        with (
            pytest.raises(Conflict, match="runs already"),
            place.own_place("drill", environ=environ, overrides={}, is_embedded=False),
        ):
            pass
    with place.own_place("drill", environ=environ, overrides={}, is_embedded=False):
        pass


@pytest.mark.kill
def test_the_command_prints_one_document_with_all_figures(tmp_path: Path, database_url: str) -> None:
    environ = os.environ | {"SENDONCE_DATA_DIR": str(tmp_path / "data"), "SENDONCE_DATABASE_URL": database_url}
    command = sendonce("drill", "--recipients", "400", "--kills", "1", "--freezes", "1", "--seed", "3", "--json")
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["held"] is True
    assert document["broken"] == []
    assert document["recipients"] == 400
    assert (document["duplicates"], document["lost"]) == (0, 0)
    assert document["states"]["sent"] + document["states"]["in_doubt"] == 400
    assert document["in_doubt_limit"] == document["kills"] * document["connections"]
    assert "Killed worker" in done.stderr


def test_a_database_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    environ = os.environ | {"SENDONCE_DATA_DIR": str(tmp_path / "data"), "SENDONCE_DATABASE_URL": url}
    done = subprocess.run(sendonce("drill"), env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "Error: The database" in done.stderr
    assert "Traceback" not in done.stderr
