"""Single messages through the lanes: each on its own way, with its own terms, whatever a campaign is doing."""

import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from house import House, house
from peers.sink import Sink
from peers.sink_script import Rule
from sqlalchemy import Engine, text

from console import clock
from console.audience.store import suppress
from console.db import transaction
from console.sends import message_types
from console.sends.intake import Receipt, Rendered, Request, accept
from console.sends.type_store import TypeRow

CODE = TypeRow(
    name="code", lane="urgent", template="code", sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern=None, in_doubt_policy="hold", attempt_cap=3, age_cap_s=900,
)  # fmt: skip


@pytest.fixture
def sink() -> Sink:
    with Sink() as sink:
        yield sink  # type: ignore[misc]


def _house(engine: Engine, database_url: str, tmp_path: Path, sink: Sink, emails: list[str] | None = None) -> House:
    at = house(engine, database_url, tmp_path, emails=emails or ["c@example.com"], smtp_url=sink.url)
    with transaction(engine) as session:
        message_types.save_template(
            session, at.stage.account_id, name="code", subject="Code {{ code }}", html="<p>Your code: {{ code }}</p>"
        )
        message_types.put_type(session, at.stage.account_id, CODE)
    return at


def _accept(at: House, number: int, **changes: object) -> Receipt:
    asked = Request(
        to=f"u{number}@example.com",
        message_type="code",
        params={"code": str(1000 + number)},
        dedupe_key=f"code:{number}",
    )
    with transaction(at.stage.engine) as session:
        return accept(session, at.stage.account_id, replace(asked, **changes))


def _states(at: House) -> dict[str, tuple]:
    with transaction(at.stage.engine) as session:
        rows = session.execute(
            text("SELECT email, status, attempt_no, error_class FROM sends WHERE campaign_id IS NULL ORDER BY email")
        )
        return {row[0]: tuple(row[1:]) for row in rows}


def _is_through(at: House) -> bool:
    return not any(state[0] in ("queued", "sending") for state in _states(at).values())


def test_messages_of_all_lanes_arrive_as_they_were_accepted(
    engine: Engine, database_url: str, tmp_path: Path, sink: Sink
) -> None:
    at = _house(engine, database_url, tmp_path, sink)
    receipts = [_accept(at, number, lane=lane) for number, lane in enumerate(("urgent", "normal", "bulk"))]
    finished = Rendered(subject="{{ literal }} ünï", html="<p>{% not a template %} {{ x }}</p>")
    receipts.append(_accept(at, 3, rendered=finished))
    with at.sending():
        at.wait_until(lambda: _is_through(at))
    assert Counter(each.recipient for each in sink.accepted) == {f"u{n}@example.com": 1 for n in range(4)}
    messages = {each.recipient: message_from_bytes(each.wire, policy=policy.default) for each in sink.accepted}
    assert [messages[f"u{n}@example.com"]["Message-ID"] for n in range(4)] == [each.message_id for each in receipts]
    first, last = messages["u0@example.com"], messages["u3@example.com"]
    assert (first["Subject"], first["From"], first["List-Id"]) == ("Code 1000", "Shop <shop@example.com>", None)
    assert "Your code: 1000" in first.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    assert last["Subject"] == "{{ literal }} ünï"
    assert "{% not a template %} {{ x }}" in last.get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert set(_states(at).values()) == {("sent", 1, "")}


def test_an_urgent_message_is_sent_at_once_while_a_campaign_waits_on_every_connection(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """The tick is long: only the wake-up by NOTIFY and connections of its own can get it there."""
    emails = [f"c{number}@example.com" for number in range(60)]
    with Sink(Rule(stage="DOT", wait_s=3.0, when=lambda event: (event.recipient or "").startswith("c"))) as sink:
        at = _house(engine, database_url, tmp_path, sink, emails)
        at.stage.built()
        with at.sending(TICK_SECONDS="30", CONNECTIONS="4"):
            sink.wait_for(lambda _: len(sink.datas) >= 4)
            asked_at = time.monotonic()
            _accept(at, 1)
            sink.wait_for(lambda _: any(each.recipient == "u1@example.com" for each in sink.accepted))
            waited_s = next(each.at for each in sink.datas if each.recipient == "u1@example.com") - asked_at
            assert waited_s < 2.5


def test_a_pause_of_the_campaign_is_none_of_the_urgent_lane_and_a_flow_of_that_is_none_of_the_campaign(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C73: urgent messages go on while the campaign is paused, and the campaign goes on among urgent messages."""
    emails = [f"c{number}@example.com" for number in range(60)]
    with Sink(Rule(stage="DOT", wait_s=0.1)) as sink:
        at = _house(engine, database_url, tmp_path, sink, emails)
        campaign_id = at.stage.built()
        with at.sending(CONNECTIONS="1"):
            for number in range(10):
                _accept(at, number)
                before = len(sink.accepted)
                sink.wait_for(lambda _, before=before: len(sink.accepted) > before)
            at.wait_until(lambda: any(each.recipient.startswith("c") for each in sink.accepted))
            at.wait_until(lambda: len(_urgent(sink)) == 10)
            at.stage.do("pause", campaign_id)
            at.wait_until(lambda: "sending" not in at.rows("status", campaign_id=campaign_id).values())
            waiting = list(at.rows("status", campaign_id=campaign_id).values()).count("queued")
            assert waiting > 0
            _accept(at, 10)
            at.wait_until(lambda: len(_urgent(sink)) == 11)
            assert list(at.rows("status", campaign_id=campaign_id).values()).count("queued") == waiting
            at.stage.do("resume", campaign_id)
            at.wait_until_sent(campaign_id, timeout_s=60)
        assert Counter(each.recipient for each in sink.accepted) == dict.fromkeys(
            [*emails, *(f"u{number}@example.com" for number in range(11))], 1
        )


def _urgent(sink: Sink) -> list[str]:
    return [each.recipient for each in sink.accepted if each.recipient.startswith("u")]


def test_a_retry_stays_byte_for_byte_and_ends_at_the_types_cap(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink(Rule(stage="DOT", reply="451 4.3.0 later")) as sink:
        at = _house(engine, database_url, tmp_path, sink)
        _accept(at, 1)
        with at.sending(RETRY_BASE_SECONDS="0.05", TICK_SECONDS="0.1"):
            at.wait_until(lambda: not sink.datas or _accept_new_version(at))
            at.wait_until(lambda: _is_through(at))
        assert _states(at) == {"u1@example.com": ("dead", 3, "451-4.3.0-end")}
        assert len({each.wire for each in sink.datas}) == 1
        assert len(sink.datas) == 3


def _accept_new_version(at: House) -> bool:
    with transaction(at.stage.engine) as session:
        message_types.save_template(session, at.stage.account_id, name="code", subject="Changed", html="<p>x</p>")
    return True


@pytest.mark.parametrize(("policy_", "expected"), [("hold", ("in_doubt", 1)), ("resend", ("sent", 2))])
def test_silence_after_the_dot_follows_the_types_policy(
    engine: Engine, database_url: str, tmp_path: Path, policy_: str, expected: tuple[str, int]
) -> None:
    with Sink(Rule(stage="DOT", then="close", accepts=True, times=1)) as sink:
        at = _house(engine, database_url, tmp_path, sink)
        with transaction(engine) as session:
            message_types.put_type(session, at.stage.account_id, replace(CODE, in_doubt_policy=policy_))
        _accept(at, 1)
        with at.sending(RETRY_BASE_SECONDS="0.05", TICK_SECONDS="0.1"):
            at.wait_until(lambda: _is_through(at))
        assert _states(at)["u1@example.com"][:2] == expected


def test_what_is_opted_out_expired_or_too_old_is_not_sent(
    engine: Engine, database_url: str, tmp_path: Path, sink: Sink
) -> None:
    at = _house(engine, database_url, tmp_path, sink)
    for number in range(4):
        _accept(at, number, expires_after=clock.now() + timedelta(hours=1))
    with transaction(engine) as session:
        suppress(session, at.stage.account_id, email_lower="u0@example.com", kind="complained", reason="said so")
        session.execute(text("UPDATE sends SET expires_at = now() WHERE email = 'u1@example.com'"))
        session.execute(
            text("UPDATE sends SET first_due_at = now() - interval '1 hour' WHERE email = 'u2@example.com'")
        )
    with at.sending():
        at.wait_until(lambda: _is_through(at))
    assert {email: state[0] for email, state in _states(at).items()} == {
        "u0@example.com": "suppressed", "u1@example.com": "expired", "u2@example.com": "dead", "u3@example.com": "sent",
    }  # fmt: skip
    assert [each.recipient for each in sink.accepted] == ["u3@example.com"]


def test_a_message_for_later_waits(engine: Engine, database_url: str, tmp_path: Path, sink: Sink) -> None:
    at = _house(engine, database_url, tmp_path, sink)
    _accept(at, 1, send_after=clock.now() + timedelta(seconds=1.5))
    with at.sending(TICK_SECONDS="0.1"):
        time.sleep(0.7)
        assert not sink.datas
        at.wait_until(lambda: _is_through(at))
    assert len(sink.accepted) == 1


def test_values_that_break_one_message_break_no_other(
    engine: Engine, database_url: str, tmp_path: Path, sink: Sink
) -> None:
    at = _house(engine, database_url, tmp_path, sink)
    _accept(at, 1, params={"code": "a\r\nBcc: x@example.com"})
    _accept(at, 2)
    with at.sending():
        at.wait_until(lambda: _is_through(at))
    assert {email: state[0] for email, state in _states(at).items()} == {
        "u1@example.com": "failed",
        "u2@example.com": "sent",
    }


def test_many_at_once_from_several_threads_arrive_once_each(
    engine: Engine, database_url: str, tmp_path: Path, sink: Sink
) -> None:
    at = _house(engine, database_url, tmp_path, sink)
    with at.sending():
        threads = [
            threading.Thread(target=lambda start=start: [_accept(at, n) for n in range(start, start + 40)])
            for start in (0, 0, 20, 40)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        at.wait_until(lambda: _is_through(at))
    assert Counter(each.recipient for each in sink.accepted) == {f"u{n}@example.com": 1 for n in range(80)}
