"""A worker killed between "accepted by the provider" and "recorded as sent", with every kind of provider there is.

One worker is killed with a message of each kind on its way; each test looks how one of them ended.
"""

import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from at_vendor import DIALECTS, NOTE, doubts, pass_time_until, use
from house import House, house
from peers.sink import Sink
from peers.vendor import Vendor
from sqlalchemy import make_url

from console.db import make_engine, transaction
from console.providers import service
from console.sends import message_types
from console.sends.intake import Rendered, Request, accept

pytestmark = pytest.mark.kill


@dataclass(frozen=True)
class End:
    """How a message ends: its state, how often it was accepted and handed over, what look-ups answered."""

    status: str
    accepted: int
    attempts: int
    look_ups: tuple[str, ...] = ()


ENDS = {
    # Nobody can tell: in doubt, or twice where a person chose that.
    ("smtp", "hold"): End("in_doubt", 1, 1),
    ("smtp", "resend"): End("sent", 2, 2),
    ("ses", "hold"): End("in_doubt", 1, 1),
    ("ses", "resend"): End("sent", 2, 2),
    # The same key again.
    ("resend", "hold"): End("sent", 1, 2),
    ("resend", "resend"): End("sent", 1, 2),
    ("brevo", "hold"): End("sent", 1, 2),
    ("brevo", "resend"): End("sent", 1, 2),
    ("file", "hold"): End("sent", 1, 2),
    # A look-up.
    ("postmark", "hold"): End("sent", 1, 1, ("found",)),
    ("postmark", "resend"): End("sent", 1, 1, ("found",)),
    ("mailjet", "hold"): End("sent", 1, 1, ("found",)),
    ("mailjet", "resend"): End("sent", 1, 1, ("found",)),
}
LOOKED_UP = ("/postmark", "/mailjet")

# Every write of an outcome stands still; marks go through.
STALL = """
CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$;
CREATE TRIGGER stall BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION stall();
"""
# What the killed one had asked of the database would be done yet.
CUT = """
SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'sendonce dispatch'
"""


@dataclass
class Peers:
    """All that take messages."""

    sink: Sink
    vendors: dict[str, Vendor]
    folder: Path

    def accepted(self) -> Counter[str]:
        """How often each message was accepted, by its recipient."""
        files = [path.read_text() for path in self.folder.rglob("*.eml")]
        written = [line[4:] for file in files for line in file.splitlines() if line.startswith("To: ")]
        taken = [each.recipient for vendor in self.vendors.values() for each in vendor.taken]
        return Counter([*written, *taken, *(each.recipient for each in self.sink.accepted)])


def address(kind: str, policy: str) -> str:
    return f"{kind}-{policy}@example.com"


@pytest.fixture(scope="module")
def ended(
    server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[House, Counter[str]]]:
    """The installation after the kill and all that followed, and how often each message was accepted."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
    folder = tmp_path_factory.mktemp("killed")
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        with ExitStack() as stack:
            engine = make_engine(url)
            stack.callback(engine.dispose)
            sink = stack.enter_context(Sink())
            vendors = {kind: stack.enter_context(Vendor(dialect())) for kind, dialect in DIALECTS.items()}
            at = house(engine, url, folder, emails=["c@example.com"], smtp_url=sink.url)
            peers = Peers(sink, vendors, folder / "data" / "outbox")
            _configure(at, peers)
            _kill_and_go_on(at, peers)
            yield at, peers.accepted()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _configure(at: House, peers: Peers) -> None:
    """A provider, a route and two message types of each kind; SMTP is the installation's own server."""
    for kind, vendor in peers.vendors.items():
        use(at, kind, name=kind, settings={"base_url": vendor.url})
    use(at, "file", name="file", secret=None)
    with transaction(at.engine) as session:
        for kind in {kind for kind, _ in ENDS}:
            service.set_route(session, at.stage.account_id, user_id=None, name=kind, providers=[kind])
        for kind, policy in ENDS:
            # In lanes of their own: else one's mark may wait for the same commit as the other's outcome.
            lane = "urgent" if policy == "resend" else "normal"
            row = replace(NOTE, name=f"{kind}-{policy}", lane=lane, route=kind, in_doubt_policy=policy)
            message_types.put_type(session, at.stage.account_id, row)


def _ask(at: House) -> None:
    with transaction(at.engine) as session:
        for kind, policy in ENDS:
            asked = Request(
                to=address(kind, policy),
                message_type=f"{kind}-{policy}",
                rendered=Rendered(subject="Hello", html="<p>Hello</p>"),
                dedupe_key=f"{kind}-{policy}",
            )
            accept(session, at.stage.account_id, asked)


def _kill_and_go_on(at: House, peers: Peers) -> None:
    everyone = Counter({address(*each): 1 for each in ENDS})
    with at.children() as children:
        at.stage.sql(STALL)
        killed = at.worker(children)
        _ask(at)
        at.wait_until(lambda: peers.accepted() == everyone, timeout_s=60)
        killed.kill()
        at.stage.sql(CUT)
        assert set(at.rows("status", "attempt_no").values()) == {("sending", 1)}
        at.stage.sql("DROP TRIGGER stall ON attempts")
        at.worker(children)
        # What does not come about is for the tests to say, of each kind by itself.
        with suppress(TimeoutError):
            at.wait_until(lambda: _is_at(at, {each: end for each, end in ENDS.items() if not end.look_ups}))
            # Not before the provider's records have settled.
            at.wait_until(lambda: sum(row.provider.endswith(LOOKED_UP) for row in doubts(at)) == 4)
            assert at.stage.sql("SELECT FROM look_ups") == []
            pass_time_until(at, 150, lambda: _is_at(at, ENDS))
            # Whoever is in doubt stays so: by then the steps of each have come round again.
            pass_time_until(at, 3600, lambda: all(row.is_held for row in doubts(at)))


def _is_at(at: House, ends: dict[tuple[str, str], End]) -> bool:
    found = at.rows("status", "attempt_no")
    return all(found[address(*each)] == (end.status, end.attempts) for each, end in ends.items())


@pytest.mark.parametrize(("kind", "policy"), ENDS)
def test_a_worker_killed_between_accepted_and_recorded(
    ended: tuple[House, Counter[str]], kind: str, policy: str
) -> None:
    """As the design's ledger.md says: accepted once where the policy is hold, and where the provider can tell."""
    at, accepted = ended
    end, email = ENDS[kind, policy], address(kind, policy)
    send_id, status, attempt_no, provider_id = at.rows("id", "status", "attempt_no", "provider_id")[email]
    assert (status, attempt_no, accepted[email]) == (end.status, end.attempts, end.accepted)
    looked = at.stage.sql("SELECT answer FROM look_ups WHERE send_id = :id ORDER BY id", id=send_id)
    assert tuple(answer for (answer,) in looked) == end.look_ups
    first = "SELECT outcome, phase, provider FROM attempts WHERE send_id = :id AND attempt_no = 1"
    [(outcome, phase, provider)] = at.stage.sql(first, id=send_id)
    assert (outcome, phase) == ("no_answer", "recovery")
    # The attempt of the killed worker stands under its own provider's name.
    assert provider == ("smtp" if kind == "smtp" else f"{at.stage.account_id}/{kind}")
    if status == "sent" and kind not in ("smtp", "brevo"):
        # Brevo proves by refusing the key that it has the message, and does not say its id again.
        assert provider_id
