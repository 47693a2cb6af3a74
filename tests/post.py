"""An application that posts events to an endpoint of the inbox, signed as the endpoint wants it."""

import base64
import json
from datetime import datetime
from typing import Any

import make
import visit
from flask import Flask
from sqlalchemy import text
from standardwebhooks import Webhook
from werkzeug.test import TestResponse

from console import clock
from console.db import transaction
from console.inbox.service import Made

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
