"""An office with a template and a message type, and what their forms take."""

import visit
from doorway import Doorway
from sqlalchemy import Engine

TYPE = {
    "lane": "normal", "template": "receipt", "sender": "Shop <shop@example.com>", "route": "",
    "key_pattern": "order_receipt:{order_id}", "window": "24h", "mode": "observe", "on_conflict": "first",
    "in_doubt_policy": "resend", "attempt_cap": "5", "max_age": "2h",
}  # fmt: skip
TEMPLATE = {"subject": "Order {{ order_id }}", "html": "<p>{{ name | default('Hello') }}</p>", "text": ""}


def shop(engine: Engine, *, slug: str = "acme", app=None) -> tuple[visit.Office, Doorway]:
    """An office and its door, with the template `receipt` and the message type `order_receipt`."""
    office = visit.office(engine, slug=slug, app=app)
    door = Doorway(engine, office.account_id)
    door.template()
    door.type()
    return office, door
