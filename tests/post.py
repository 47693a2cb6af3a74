"""An application that posts events to an endpoint of the inbox, signed as the endpoint wants it."""

import base64
import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import make
import visit
from flask import Flask
from sqlalchemy import Engine, text
from standardwebhooks import Webhook
from werkzeug.test import TestResponse

from console import clock, config
from console.db import transaction
from console.inbox import rules
from console.inbox.rules import Draft
from console.inbox.service import Made
from console.inbox.ticks import read_events
from console.sends import message_types
from console.sends.type_store import TypeRow

WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


def endpoint(office: visit.Office, *, name: str = "shop", **wanted: Any) -> Made:
    """An endpoint of the office's account, as make.endpoint."""
    with transaction(office.engine) as session:
        return make.endpoint(session, office.account_id, name=name, **wanted)


def event(
    app: Flask, made: Made, body: bytes | dict[str, Any] | list[Any], *, headers: dict[str, str] | None = None
) -> TestResponse:
    """Posts a body as it is, or a JSON value."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    path = f"/inbox/{made.name}/{made.token}"
    return app.test_client().post(path, data=sent, headers=headers, content_type="application/json")


def signed(body: bytes, *, event_id: str, secret: str = WEBHOOK_SECRET, at: datetime | None = None) -> dict[str, str]:
    """The headers of Standard Webhooks, made by its own library."""
    moment = at or clock.now()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(msg_id=event_id, timestamp=moment, data=body.decode()),
    }


def rows(office: visit.Office, statement: str, **values: Any) -> list[Any]:
    """What a query gives, for looking behind the screens."""
    with transaction(office.engine) as session:
        return list(session.execute(text(statement), values).all())


ORDER = {
    "id": "evt_1",
    "type": "order.paid",
    "data": {"order": {"id": 1001, "total": "19.90"}, "customer": {"email": "rita@example.com", "name": "Rita"}},
}
DRAFT = Draft(
    name="receipt",
    event_type="order.paid",
    message_type="receipt",
    recipient_path="$.data.customer.email",
    params={"order_id": "$.data.order.id", "name": "$.data.customer.name"},
    entities={"order": "$.data.order.id"},
)


@dataclass(frozen=True)
class Shop:
    """An account whose endpoint `shop` has one rule: a receipt for each order.paid."""

    office: visit.Office
    made: Made
    rule_id: int

    @property
    def engine(self) -> Engine:
        return self.office.engine

    def post(self, body: Any = None, *, made: Made | None = None, **changes: Any) -> int:
        """The number of the event that is stored of an order; `changes` to the order's event."""
        answer = event(self.office.app, made or self.made, body if body is not None else {**ORDER, **changes})
        assert answer.status_code == 200, answer.get_data(as_text=True)
        assert answer.json is not None
        return answer.json["id"]

    def post_with(self, made: Made, body: dict[str, Any], headers: dict[str, str]) -> None:
        """Posts a body with headers of its own."""
        answer = event(self.office.app, made, body, headers=headers)
        assert answer.status_code == 200, answer.get_data(as_text=True)

    def endpoint(self, name: str, **wanted: Any) -> Made:
        """A further endpoint, as make.endpoint."""
        return endpoint(self.office, name=name, **wanted)

    def read(self) -> int:
        """Reads all that waits, as the scheduler does."""
        return read_events(self.engine, SETTINGS)

    def row(self, event_id: int) -> Any:
        """The event as it stands."""
        [found] = rows(self.office, "SELECT * FROM inbox_events WHERE id = :id", id=event_id)
        return found

    def sends(self) -> list[Any]:
        return rows(self.office, "SELECT * FROM sends ORDER BY id")

    def triggers(self) -> list[Any]:
        return rows(self.office, "SELECT * FROM triggers ORDER BY id")

    def type(self, name: str = "receipt", **settings: Any) -> None:
        """Makes or changes a message type of the template `receipt`."""
        with transaction(self.engine) as session:
            message_types.put_type(session, self.office.account_id, replace(_TYPE, name=name, **settings))

    def draft(self, name: str = "receipt", *, made: Made | None = None, **changes: Any) -> int:
        """The number of a rule that has been written and no more."""
        with transaction(self.engine) as session:
            return rules.add_rule(
                session,
                self.office.account_id,
                (made or self.made).endpoint_id,
                user_id=None,
                draft=replace(DRAFT, name=name, **changes),
            )

    def on(self, rule_id: int) -> None:
        """Switches a rule on without a trial on an event, which not every test has."""
        with transaction(self.engine) as session:
            session.execute(text("UPDATE inbox_rules SET status = 'off' WHERE status = 'on' AND event_type = (SELECT"
                                 " event_type FROM inbox_rules WHERE id = :id) AND endpoint_id = (SELECT endpoint_id"
                                 " FROM inbox_rules WHERE id = :id)"), {"id": rule_id})  # fmt: skip
            session.execute(
                text(
                    "UPDATE inbox_rules SET tried_version = version, tried_event_id = 1, status = 'on' WHERE id = :id"
                ),
                {"id": rule_id},
            )


SETTINGS = config.load({"SENDONCE_SECRET_KEY": make.SECRET_KEY})
_TYPE = TypeRow(
    name="receipt", lane="normal", template="receipt", sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern=None, in_doubt_policy="hold", attempt_cap=12, age_cap_s=345_600,
)  # fmt: skip


def shop(engine: Engine, *, is_on: bool = True) -> Shop:
    """An account whose orders get their receipts; with `is_on` False the rule is a draft still."""
    office = visit.office(engine)
    with transaction(engine) as session:
        message_types.save_template(
            session, office.account_id, name="receipt", subject="Order {{ order_id }}", html="<p>Hello {{ name }}</p>"
        )
        message_types.put_type(session, office.account_id, _TYPE)
    one = Shop(office, endpoint(office), 0)
    one = replace(one, rule_id=one.draft())
    if is_on:
        one.on(one.rule_id)
    return one
