"""An account that things really happen to, by API, SQL, webhook, workers and people; and the timelines of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import post
import programs
from house import House, house
from peers.sink import Sink
from post import Shop
from sqlalchemy import Engine, text
from stage import SETTINGS, Stage

from console.db import transaction
from console.incidents import service
from console.incidents.service import Timeline
from console.sends import settle
from console.sends.states import Change

RITA = "rita@example.com"
# Where all these are, a send is through, whatever became of it.
THROUGH = ("sent", "failed", "in_doubt", "dead", "suppressed", "cancelled", "expired")


@dataclass(frozen=True)
class Scene:
    """One account with the message types `receipt` and `reset`, a mail server, and a program with a key."""

    shop: Shop
    at: House
    sink: Sink
    program: programs.Program

    @property
    def engine(self) -> Engine:
        return self.shop.engine

    def asks(
        self, key: str, *, correlation: str = "", request: str = "", order: Any = 1001, to: str = RITA, **more: Any
    ) -> dict[str, Any]:
        """An application asks by the API; gives the answer."""
        headers = {name: value for name, value in
                   (("X-Correlation-ID", correlation), ("X-Request-ID", request)) if value}  # fmt: skip
        body = {"to": to, "message_type": "receipt", "dedupe_key": key, "params": {"order_id": order, "name": "Rita"},
                "trigger_source": "web_request", "code_path": "shop.pay", "event": "order.paid", **more}  # fmt: skip
        answer = self.program.post("/emails", body, headers=headers)
        assert answer.status_code in (200, 202, 409), answer.get_data(as_text=True)
        return answer.get_json()

    def asks_in_sql(self, key: str, *, order: int = 1001, **more: Any) -> None:
        """An application asks from its own transaction, in a session of its own."""
        named = {
            "event": "order.paid",
            "code_path": "shop.paid_callback",
            "entities": "{}",
            "correlation_id": None,
            **more,
        }
        with transaction(self.engine) as session:
            session.execute(
                text(
                    "SELECT sendonce.send(:to, 'receipt', :key, jsonb_build_object('order_id', CAST(:order AS int),"
                    " 'name', 'Rita'), event => :event, code_path => :code_path, entities => CAST(:entities AS jsonb),"
                    " correlation_id => :correlation_id)"
                ),
                {"to": RITA, "key": key, "order": order, **named},
            )

    def hooks(self, **changes: Any) -> int:
        """A webhook of the order comes, and is read; gives the number of its event."""
        event_id = self.shop.post(**changes)
        while self.shop.read():
            pass
        return event_id

    def sends(self, **changes: str) -> None:
        """Lets workers send until everything is through."""
        with self.at.sending(**changes):
            self.at.wait_until(self.is_through, timeout_s=60)

    def is_through(self) -> bool:
        return all(each.status in THROUGH for each in self.shop.sends())

    @contextmanager
    def worker(self) -> Iterator[Any]:
        """A worker in a process of its own."""
        with self.at.children() as children:
            yield self.at.worker(children)

    def settles(self, change: Change, send_id: int, *, reason: str = "She says that nothing came.") -> None:
        """A person decides about a send."""
        office = self.shop.office
        with transaction(self.engine) as session:
            set_id = settle.freeze(
                session, office.account_id, user_id=office.users["oda"], change=change, send_ids=[send_id]
            )
            assert set_id is not None
            ran = settle.run(session, office.account_id, set_id, user_id=office.users["oda"], reason=reason)
        assert ran.moved_count == 1

    def timeline(self, wanted: str = RITA, **window: Any) -> Timeline:
        with transaction(self.engine) as session:
            return service.show(session, self.shop.office.account_id, wanted, **window)


@contextmanager
def scene(engine: Engine, database_url: str, folder: Path, *script: Any) -> Iterator[Scene]:
    """Opens the scene; `script` says what the mail server does."""
    shop = post.shop(engine)
    shop.type("reset", lane="urgent", age_cap_s=900)
    office = shop.office
    with transaction(engine) as session:
        # The tests' own role is a superuser, and so a member of every role.
        session.execute(
            text("INSERT INTO sql_grants (account_id, role_name) VALUES (:id, 'pg_monitor')"), {"id": office.account_id}
        )
    stage = Stage(engine, office.account_id, office.users["mia"], office.users["abe"], office.list_id, SETTINGS)
    with Sink(*script) as sink:
        yield Scene(
            shop,
            house(engine, database_url, folder, smtp_url=sink.url, stage=stage),
            sink,
            programs.program(engine, office.app, office.account_id),
        )


def copies_of(sink: Sink, recipient: str = RITA) -> int:
    """How many messages the mail server took for the recipient: what really arrived."""
    return sum(each.recipient == recipient for each in sink.accepted)


def as_json(found: Timeline) -> dict[str, Any]:
    """The document as it is printed."""
    return json.loads(json.dumps(found.document(), default=str))


Play = Callable[[Scene], None]
