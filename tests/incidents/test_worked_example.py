"""The worked example of 10:02:11: two clicks for one reset, and a provider that times out in between."""

from pathlib import Path

from peers.sink_script import Rule
from scene import Scene, as_json, copies_of, scene
from sqlalchemy import Engine

# The first call to the provider times out, and the job goes on with a second one.
TIMES_OUT = Rule(stage="DOT", times=1, reply="451 4.4.2 timed out")


def _click_twice(at: Scene) -> None:
    for click in ("click-1", "click-2"):
        at.asks("reset:7:7781", message_type="reset", event="password.reset", code_path="auth.send_reset_link",
                correlation=click, entities={"user_id": "7", "reset_token_id": "7781"})  # fmt: skip
    at.sends()


def test_observed_it_shows_two_mails_and_says_why(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with scene(engine, database_url, tmp_path, TIMES_OUT) as at:
        at.shop.type("reset", lane="urgent", age_cap_s=900, mode="observe")
        _click_twice(at)
        found = at.timeline()
        assert copies_of(at.sink) == 2
    document = as_json(found)
    assert document["answers"] == {
        "events": ["password.reset (reset_token_id 7781, user_id 7)"],
        "code_paths": ["web_request auth.send_reset_link"],
        "enqueued": 2,
        "accepts": 2,
    }
    assert (document["verdict"]["cause"], document["verdict"]["decided"]) == ("event_created_twice", True)
    assert "Both have the key reset:7:7781." in document["verdict"]["evidence"]
    kinds = [each["kind"] for each in document["events"]]
    assert kinds[:4] == ["trigger", "enqueued", "trigger", "enqueued"]
    assert kinds.count("answer") == 3
    [second] = [each["text"] for each in document["events"] if each["ids"].get("correlation_id") == "click-2"][:1]
    assert "later: a web request from auth.send_reset_link asked, about password.reset" in second
    assert "the message type only observes, so it made a message all the same" in second
    assert any("put it off, so it surely was not accepted" in each["text"] for each in document["events"])


def test_enforced_it_is_one_mail_and_one_suppressed_trigger(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with scene(engine, database_url, tmp_path, TIMES_OUT) as at:
        _click_twice(at)
        found = at.timeline()
        assert copies_of(at.sink) == 1
        assert [each.decision for each in at.shop.triggers()] == ["accepted", "duplicate_suppressed"]
    assert (found.answers.enqueued, found.answers.accepts) == (1, 1)
    assert (found.verdict.cause, found.verdict.decided) == ("one_accept", True)
    assert any("A repeat was held back" in each and "reset:7:7781" in each for each in found.verdict.evidence)
    assert "its key was taken, so it made no second message" in found.text()
