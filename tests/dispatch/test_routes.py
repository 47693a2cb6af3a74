"""Messages go by the route of their type: each provider has pumps of its own; what it refuses for now goes on."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from at_vendor import ask, route, use, vendor_house
from house import House, house
from peers.sink import Sink
from peers.sink_script import Rule
from peers.vendor import Fault, Said
from sqlalchemy import Engine, text

from console.db import transaction
from console.providers import service as providers
from console.providers.service import Draft
from console.sends import message_types
from console.sends.intake import Rendered, Request, accept
from console.sends.type_store import TypeRow

NOTE = TypeRow(
    name="note", lane="normal", template=None, sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern=None, in_doubt_policy="hold", attempt_cap=6, age_cap_s=3600,
)  # fmt: skip


def _house(
    engine: Engine, database_url: str, tmp_path: Path, own: Sink, *others: Sink, routes: dict[str, list[str]]
) -> House:
    """An installation whose own server is `own`; `others` are the providers p0, p1 and so on."""
    at = house(engine, database_url, tmp_path, emails=["c@example.com"], smtp_url=own.url)
    with transaction(engine) as session:
        for number, other in enumerate(others):
            draft = Draft(
                name=f"p{number}",
                kind="smtp",
                settings={"host": "127.0.0.1", "port": str(other.port), "tls": "off"},
            )
            providers.add(session, at.stage.account_id, user_id=None, draft=draft, secret_key=at.settings().secret_key)
        for name, names in routes.items():
            providers.set_route(session, at.stage.account_id, user_id=None, name=name, providers=names)
        message_types.put_type(session, at.stage.account_id, NOTE)
    return at


def _accept(at: House, number: int) -> None:
    asked = Request(
        to=f"u{number}@example.com",
        message_type="note",
        rendered=Rendered(subject="Hello", html="<p>Hello</p>"),
        dedupe_key=f"note:{number}",
    )
    with transaction(at.stage.engine) as session:
        accept(session, at.stage.account_id, asked)


def _is_through(at: House) -> bool:
    return not any(status in ("queued", "sending") for status in at.statuses().values())


def test_a_message_goes_by_its_types_route_and_not_by_the_installations_server(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink() as own, Sink() as other:
        at = _house(engine, database_url, tmp_path, own, other, routes={"notes": ["p0"]})
        with transaction(engine) as session:
            message_types.put_type(session, at.stage.account_id, replace(NOTE, route="notes"))
        _accept(at, 1)
        with at.sending():
            at.wait_until(lambda: _is_through(at))
        assert not own.datas
        assert [each.recipient for each in other.accepted] == ["u1@example.com"]
        with transaction(engine) as session:
            assert session.execute(text("SELECT provider FROM attempts")).scalars().all() == ["1/p0"]


def test_the_default_route_is_everybodys_campaigns_included(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with Sink() as own, Sink() as other:
        at = _house(engine, database_url, tmp_path, own, other, routes={"default": ["p0", "smtp"]})
        campaign_id = at.stage.approved()
        _accept(at, 1)
        with at.sending():
            at.wait_until_sent(campaign_id)
            at.wait_until(lambda: _is_through(at))
        assert not own.datas
        assert Counter(each.recipient for each in other.accepted) == {"u1@example.com": 1, "c@example.com": 1}


def test_what_the_first_provider_surely_did_not_take_goes_to_the_second(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink(Rule(stage="RCPT", reply="451 4.3.0 later")) as first, Sink() as second, Sink() as own:
        at = _house(engine, database_url, tmp_path, own, first, second, routes={"default": ["p0", "p1"]})
        _accept(at, 1)
        with at.sending(RETRY_BASE_SECONDS="0.05"):
            at.wait_until(lambda: _is_through(at))
        assert [each.recipient for each in second.accepted] == ["u1@example.com"]
        assert not first.datas
        assert not own.datas


def test_while_the_first_provider_is_away_all_goes_by_the_second_and_then_by_the_first_again(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Single messages and campaigns; no attempt is counted for what could not be reached."""
    with Sink(is_listening=False) as first, Sink() as second, Sink() as own:
        at = _house(engine, database_url, tmp_path, own, first, second, routes={"default": ["p0", "p1"]})
        campaign_id = at.stage.approved()
        _accept(at, 1)
        with at.sending():
            at.wait_until_sent(campaign_id)
            at.wait_until(lambda: _is_through(at))
            assert Counter(each.recipient for each in second.accepted) == {"u1@example.com": 1, "c@example.com": 1}
            assert set(at.rows("status", "attempt_no").values()) == {("sent", 1)}
            assert not first.datas
            first.accept_connections()
            at.wait_until(lambda: _open_breakers(at) == [], timeout_s=40)
            _accept(at, 2)
            campaign_id = at.stage.approved()
            at.wait_until_sent(campaign_id)
            at.wait_until(lambda: _is_through(at))
        assert Counter(each.recipient for each in first.accepted) == {"u2@example.com": 1, "c@example.com": 1}
        assert len(second.accepted) == 2
        assert not own.datas


def test_a_campaign_s_message_that_the_first_did_not_take_goes_to_the_second(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink(Rule(stage="RCPT", reply="451 4.3.0 later")) as first, Sink() as second, Sink() as own:
        at = _house(engine, database_url, tmp_path, own, first, second, routes={"default": ["p0", "p1"]})
        campaign_id = at.stage.approved()
        with at.sending(RETRY_BASE_SECONDS="0.05"):
            at.wait_until_sent(campaign_id)
        assert [each.recipient for each in second.accepted] == ["c@example.com"]
        assert not first.datas
        assert set(at.rows("status", "attempt_no").values()) == {("sent", 2)}


def test_when_all_are_away_everything_waits_for_whoever_is_back_first(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink(is_listening=False) as first, Sink(is_listening=False) as second, Sink() as own:
        at = _house(engine, database_url, tmp_path, own, first, second, routes={"default": ["p0", "p1"]})
        _accept(at, 1)
        with at.sending():
            at.wait_until(lambda: _open_breakers(at) == ["1/p0", "1/p1"])
            assert at.rows("status", "attempt_no") == {"u1@example.com": ("queued", 0)}
            second.accept_connections()
            at.wait_until(lambda: _is_through(at), timeout_s=40)
        assert [each.recipient for each in second.accepted] == ["u1@example.com"]


def test_an_account_that_is_out_of_messages_at_one_vendor_goes_by_the_other(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Surely not accepted, and nothing is said about the message: no attempt is counted."""
    quota = Said(429, {"name": "daily_quota_exceeded", "message": "quota"})
    with vendor_house(engine, database_url, tmp_path) as (at, vendor), Sink() as second:
        vendor.faults += [Fault("skip", said=quota)] * 50
        use(at, "smtp", name="p1", secret=None, settings={"host": "127.0.0.1", "port": str(second.port), "tls": "off"})
        route(at, "main", "p1")
        ask(at)
        with at.sending():
            at.wait_until(lambda: _is_through(at))
        assert [each.recipient for each in second.accepted] == ["u0@example.com"]
        assert (vendor.taken, at.rows("attempt_no")) == ([], {"u0@example.com": 1})


def _open_breakers(at: House) -> list[str]:
    with transaction(at.engine) as session:
        open_ones = "SELECT name FROM provider_states WHERE breaker = 'open' ORDER BY name"
        return list(session.execute(text(open_ones)).scalars())


def test_what_may_have_been_taken_never_goes_to_another(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with Sink(Rule(stage="DOT", then="close", accepts=True)) as first, Sink() as second, Sink() as own:
        at = _house(engine, database_url, tmp_path, own, first, second, routes={"default": ["p0", "p1"]})
        _accept(at, 1)
        with at.sending(RETRY_BASE_SECONDS="0.05"):
            at.wait_until(lambda: _is_through(at))
        assert at.statuses() == {"u1@example.com": "in_doubt"}
        assert not second.datas


def test_a_changed_provider_is_used_as_it_is_now_without_a_restart(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink() as own, Sink() as before, Sink() as after:
        at = _house(engine, database_url, tmp_path, own, before, routes={"default": ["p0"]})
        with at.sending():
            _accept(at, 1)
            at.wait_until(lambda: _is_through(at))
            with transaction(engine) as session:
                session.execute(
                    text(
                        "UPDATE providers SET settings = settings || jsonb_build_object('port', CAST(:port AS text)),"
                        " version = version + 1"
                    ),
                    {"port": str(after.port)},
                )
            at.wait_until(lambda: _sent_by_the_other(at, after))
        assert next(each.recipient for each in before.accepted) == "u1@example.com"


def _sent_by_the_other(at: House, other: Sink) -> bool:
    """Accepts another message each time, until one of them goes the new way."""
    _accept(at, 100 + len(at.statuses()))
    return bool(other.accepted)
