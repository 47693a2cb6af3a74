"""An account with a template and a message type, and requests to send that come to its door."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import make
from sqlalchemy import Engine, Row, text

from console.db import transaction
from console.sends import intake, message_types
from console.sends.intake import KeyConflict, Receipt, Request
from console.sends.type_store import TypeRow


@dataclass
class Doorway:
    """One account of a test's database."""

    engine: Engine
    account_id: int

    def template(self, name: str = "receipt", **parts: str) -> int:
        """The version of the template that these parts make, with one merge field unless they say otherwise."""
        content = {
            "subject": "Your order {{ order_id }}",
            "html": "<p>Thanks for {{ order_id }}</p>",
            "body": "",
        } | parts
        with transaction(self.engine) as session:
            return message_types.save_template(session, self.account_id, name=name, **content)

    def type(self, name: str = "order_receipt", **settings: Any) -> str:
        """The name of a message type; `settings` as in TypeRow."""
        row = {
            "name": name, "lane": "normal", "template": "receipt", "sender": "Shop <shop@example.com>",
            "window_s": None, "mode": "enforce", "on_conflict": "refuse", "key_pattern": None,
            "in_doubt_policy": "hold", "attempt_cap": 12, "age_cap_s": 345_600,
        } | settings  # fmt: skip
        with transaction(self.engine) as session:
            message_types.put_type(session, self.account_id, TypeRow(**row))
        return name

    def accept(self, **request: Any) -> Receipt:
        """The receipt for a request in a transaction of its own."""
        with transaction(self.engine) as session:
            return intake.accept(session, self.account_id, self.request(**request))

    def conflict(self, **request: Any) -> KeyConflict:
        """The conflict that such a request meets; its trigger is kept, as views keep it."""
        met: KeyConflict | None = None
        with transaction(self.engine) as session:
            try:
                intake.accept(session, self.account_id, self.request(**request))
            except KeyConflict as error:
                met = error
        assert met is not None
        return met

    def request(self, **given: Any) -> Request:
        """A request for the receipt of order 1001."""
        wanted = {
            "to": "rita@example.com",
            "message_type": "order_receipt",
            "params": {"order_id": 1001},
            "dedupe_key": "order_receipt:1001",
        }
        return Request(**(wanted | given))

    def sql(self, statement: str, **values: Any) -> Sequence[Row[Any]]:
        with transaction(self.engine) as session:
            found = session.execute(text(statement), values)
            return found.all() if found.returns_rows else []

    def sends(self) -> list[Row[Any]]:
        return list(self.sql("SELECT * FROM sends ORDER BY id"))

    def triggers(self) -> list[Row[Any]]:
        return list(self.sql("SELECT * FROM triggers ORDER BY id"))


def doorway(engine: Engine, slug: str = "acme") -> Doorway:
    """An account with the template `receipt` and the message type `order_receipt`."""
    with transaction(engine) as session:
        made = Doorway(engine, make.account(session, slug))
    made.template()
    made.type()
    return made
