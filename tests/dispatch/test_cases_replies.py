"""Public cases about the SMTP dialogue, end to end: a campaign, a worker, a scripted server. See cases.md."""

import time
from pathlib import Path

import pytest
from house import house
from peers.sink import Sink
from peers.sink_script import Rule
from sqlalchemy import Engine


def _addresses(*names: str) -> list[str]:
    return [f"{name}@example.com" for name in names]


@pytest.mark.parametrize(
    "rule",
    [
        Rule(stage="QUIT", then="close"),
        Rule(stage="QUIT", reply="421 4.4.2 timeout", then="close"),
        Rule(stage="QUIT", then="ignore"),
    ],
    ids=["closes", "says 421", "is silent"],
)
def test_a_server_that_misbehaves_at_quit_has_taken_the_message_all_the_same(
    engine: Engine, database_url: str, tmp_path: Path, rule: Rule
) -> None:
    """C25: the 250 after the dot settled it; the worker does not wait for a good-bye."""
    with Sink(rule) as sink:
        at = house(engine, database_url, tmp_path, emails=_addresses("a", "b", "c"), smtp_url=sink.url)
        campaign_id = at.stage.approved()
        with at.sending():
            at.wait_until_sent(campaign_id)
            began = time.monotonic()
        assert time.monotonic() - began < 4
        assert "QUIT" in sink.stages()
        assert len(sink.datas) == 3
        assert set(at.rows("status", "attempt_no").values()) == {("sent", 1)}
        at.check_books(sink, campaign_id)


def test_after_a_refusal_the_next_message_on_the_same_line_begins_anew(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C26: a transaction broken off half-way is reset, so that one fault stays one fault."""
    with Sink(
        Rule(stage="RCPT", recipient="q2@example.com", reply="550 5.1.1 no such user"),
        Rule(stage="DATA", recipient="q3@example.com", times=1, reply="452 4.3.1 system full"),
    ) as sink:
        emails = _addresses("q1", "q2", "q3", "q4")
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="1")
        campaign_id = at.stage.approved()
        with at.sending():
            at.wait_until_sent(campaign_id)
        assert [each.recipient for each in sink.accepted] == _addresses("q1", "q4", "q3")
        assert at.statuses() == dict(zip(emails, ("sent", "failed", "sent", "sent"), strict=True))
        assert not [reply for reply in at.rows("provider_reply").values() if "503" in reply]
        at.check_books(sink, campaign_id)


def test_a_421_in_answer_to_data_ends_the_line_and_only_the_line(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C27: after 421 the session is over, whatever the socket does; the others go on, on a new line."""
    with Sink(
        Rule(stage="DATA", recipient="a@example.com", times=1, reply="421 4.3.2 shutting down", then="ignore")
    ) as sink:
        at = house(
            engine, database_url, tmp_path, emails=_addresses("a", "b", "c"), smtp_url=sink.url, CONNECTIONS="1",
            RETRY_BASE_SECONDS="1.5",
        )  # fmt: skip
        campaign_id = at.stage.approved()
        with at.sending():
            sink.wait_for(lambda _: len(sink.accepted) == 2, timeout_s=5)
            assert [each.recipient for each in sink.accepted] == _addresses("b", "c")
            at.wait_until_sent(campaign_id)
        dead_line = [event.said.strip().upper() for event in sink.events if event.stage == "IGNORED"]
        assert set(dead_line) <= {b"QUIT"}
        assert at.rows("attempt_no") == {"a@example.com": 2, "b@example.com": 1, "c@example.com": 1}
        at.check_books(sink, campaign_id)


# (stage, first reply, what becomes of it at once)
FIRST_REPLIES = (
    ("MAIL", "451 4.3.0 busy", "retry"),
    ("MAIL", "550 5.1.7 bad sender", "failed"),
    ("RCPT", "450 4.2.0 greylisted", "retry"),
    ("RCPT", "452 4.5.3 too many", "retry"),
    ("RCPT", "550 5.1.1 no user", "failed"),
    ("RCPT", "550-5.1.1 The account\r\n550 5.1.1 is gone", "failed"),
    ("RCPT", "450 5.1.1 mixed", "retry"),
    ("DATA", "554 5.5.1 no valid recipients", "failed"),
    ("DOT", "451 4.7.1 later", "retry"),
    ("DOT", "554 5.7.1 spam", "failed"),
    ("DOT", "550 temporary problem, try later", "failed"),
    ("DOT", "250 ok", "sent"),
)


def test_the_first_digit_decides_at_every_stage(engine: Engine, database_url: str, tmp_path: Path) -> None:
    """C30: 4 is tried again after the base delay, 5 never, and the words are kept but not believed."""
    emails = [f"n{number:02d}@example.com" for number in range(1, 13)]
    rules = [
        Rule(stage=stage, recipient=email, times=1, reply=reply)  # type: ignore[arg-type]
        for email, (stage, reply, _) in zip(emails, FIRST_REPLIES, strict=True)
    ]
    base_s = 1.0
    with Sink(*rules) as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, RETRY_BASE_SECONDS=str(base_s))
        campaign_id = at.stage.approved()
        with at.sending():
            at.wait_until_sent(campaign_id)
        found = at.rows("status", "attempt_no", "provider_reply")
        for email, (_, reply, becomes) in zip(emails, FIRST_REPLIES, strict=True):
            status, attempt_no, kept = found[email]
            tries = sink.tries("RCPT", email)
            if becomes == "retry":
                assert (status, attempt_no) == ("sent", 2), email
                assert tries[-1].at - tries[0].at >= base_s, email
            else:
                assert (status, attempt_no) == (becomes, 1), email
            if becomes == "failed":
                for line in reply.split("\r\n"):
                    assert line.split(" ", 1)[1] in kept, email
        first_tries = {email: reply for email, (reply,) in _first_attempts(at).items()}
        for email, (_, reply, _) in zip(emails, FIRST_REPLIES, strict=True):
            assert reply.rsplit(" ", 1)[1] in first_tries[email], email
        at.check_books(sink, campaign_id)


def _first_attempts(at) -> dict[str, tuple[str]]:
    rows = at.stage.sql(
        "SELECT s.email, t.reply FROM attempts t JOIN sends s ON s.account_id = t.account_id AND s.id = t.send_id"
        " WHERE t.attempt_no = 1"
    )
    return {email: (reply,) for email, reply in rows}


def test_each_message_keeps_its_envelope_its_heading_and_its_body_together(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """C17: two campaigns over eight shared connections; recipient, To and body always belong together."""
    delays = [Rule(stage=stage, wait_s=0.02) for stage in ("MAIL", "RCPT", "DATA", "DOT")]  # type: ignore[arg-type]
    emails = [f"p{number:02d}@example.com" for number in range(30)]
    body = {"html": "<p>MARK:{{ email }}:</p>", "text": "MARK:{{ email }}:"}
    with Sink(*delays) as sink:
        at = house(engine, database_url, tmp_path, emails=emails, smtp_url=sink.url, CONNECTIONS="8")
        campaign_ids = [at.stage.approved(**body), at.stage.approved(**body)]
        with at.sending():
            for campaign_id in campaign_ids:
                at.wait_until_sent(campaign_id)
        assert len(sink.accepted) == 60
        for each in sink.accepted:
            head, _, text = each.wire.partition(b"\r\n\r\n")
            assert f"MARK:{each.recipient}:".encode() in text.replace(b"=\r\n", b"").replace(b"=40", b"@")
            assert f"\r\nTo: {each.recipient}\r\n".encode() in b"\r\n" + head
        assert sink.open_most <= 8
        at.check_books(sink, *campaign_ids)
