"""Brevo: refuses a key that it knows, for 15 minutes (the shorter of two figures that it documents).

Source: developers.brevo.com/reference/send-transac-email, /docs/heterogenous-versions-batch-emails (the key),
/reference/get-email-event-report (the look-up by tag).
"""

from console.providers.base import (
    Accepted,
    Answer,
    Capabilities,
    Finding,
    Idempotency,
    Message,
    NotThere,
    Trouble,
    Unknown,
)
from console.providers.http_api import Request
from console.providers.http_replies import Response, checked, identifier, judge, reply
from console.providers.parts import parts_of

BASE_URL = "https://api.brevo.com/v3"
_DAY_S = 86_400.0
# What Brevo sets itself; a second one would be a duplicate field.
_REFUSED_FIELDS = ("message-id",)


class Brevo:
    """See http_api.Api."""

    capabilities = Capabilities(
        idempotency=Idempotency.REFUSE,
        window_s=15 * 60.0,
        may_look_up=True,
        settle_s=120.0,
        horizon_s=30 * _DAY_S,
        has_reports=True,
    )

    def __init__(self, *, api_key: str):
        self._headers = {"api-key": api_key}

    def send(self, message: Message) -> Request:
        parts = parts_of(message)
        body = {
            "sender": {"email": parts.sender.address, **({"name": parts.sender.name} if parts.sender.name else {})},
            "to": [{"email": parts.recipient.address}],
            "subject": parts.subject,
            "headers": {**dict(parts.headers_without(*_REFUSED_FIELDS)), "idempotencyKey": message.key},
            "tags": [message.tag],
        }
        if parts.html is not None:
            body["htmlContent"] = parts.html
        if parts.text is not None:
            body["textContent"] = parts.text
        return Request(path="/smtp/email", headers=self._headers, json=body)

    def judge(self, response: Response) -> Answer:
        text = response.fields.get("message")
        # With whatever status it comes: the first with this key was taken, only its id is not told again.
        if response.status >= 400 and response.fields.get("code") == "duplicate_request":
            return Accepted(reply(response, text))
        return judge(response, text=text, provider_id=response.fields.get("messageId"))

    def look_up(self, message: Message) -> Request:
        query = {"tags": message.tag, "days": "30", "limit": "10"}
        return Request(method="GET", path="/smtp/statistics/events", headers=self._headers, query=query)

    def found(self, response: Response, message: Message) -> Finding:
        events = [] if response.is_empty_object else response.fields.get("events")
        if response.status != 200 or not isinstance(events, list):
            return Unknown(f"HTTP {response.status}: {response.text}")
        for event in events:
            if isinstance(event, dict) and event.get("tag") == message.tag:
                return Accepted(reply(response, f"found: {event.get('event')}"), identifier(event.get("messageId")))
        return NotThere(reply(response, "no event with this tag"))

    def ask(self) -> Request:
        return Request(method="GET", path="/account", headers=self._headers)

    def checked(self, response: Response) -> Trouble | None:
        return checked(response, text=response.fields.get("message"))
