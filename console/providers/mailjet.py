"""Mailjet (Send API v3.1): knows no keys, but finds a message by the CustomID that we gave it.

Source: dev.mailjet.com/email/guides/send-api-v31, /email/reference/messages (filter CustomID).
"""

import base64
from typing import Any

from console.providers.base import Accepted, Answer, Capabilities, Finding, Message, NotThere, Trouble, Unknown
from console.providers.http_api import Request
from console.providers.http_replies import Response, checked, identifier, judge, reply
from console.providers.parts import Mailbox, parts_of

BASE_URL = "https://api.mailjet.com"
# Setting one of these has the whole message refused.
_REFUSED_FIELDS = (
    "message-id",
    "list-id",
    "x-feedback-id",
    "sender",
    "reply-to",
    "return-path",
    "user-agent",
    "x-mailer",
)


class Mailjet:
    """See http_api.Api."""

    capabilities = Capabilities(may_look_up=True, settle_s=120.0, horizon_s=30 * 86_400.0, has_reports=True)

    def __init__(self, *, api_key: str, secret_key: str):
        credentials = base64.b64encode(f"{api_key}:{secret_key}".encode()).decode("ascii")
        self._headers = {"Authorization": f"Basic {credentials}"}

    def send(self, message: Message) -> Request:
        parts = parts_of(message)
        body: dict[str, Any] = {
            "From": _mailbox(parts.sender),
            "To": [_mailbox(parts.recipient)],
            "Subject": parts.subject,
            "CustomID": message.tag,
            "Headers": dict(parts.headers_without(*_REFUSED_FIELDS)),
        }
        if parts.html is not None:
            body["HTMLPart"] = parts.html
        if parts.text is not None:
            body["TextPart"] = parts.text
        return Request(path="/v3.1/send", headers=self._headers, json={"Messages": [body]})

    def judge(self, response: Response) -> Answer:
        told = _first(response.fields.get("Messages"))
        error = _first(told.get("Errors"))
        text = error.get("ErrorMessage") or response.fields.get("ErrorMessage")
        if told.get("Status") == "error":
            # Each message has a status of its own, which holds whatever the answer's is.
            status = error.get("StatusCode")
            own = status if isinstance(status, int) and 400 <= status <= 599 else max(response.status, 400)
            response = Response(own, response.headers, response.body)
        return judge(response, text=text, provider_id=_first(told.get("To")).get("MessageID"))

    def look_up(self, message: Message) -> Request:
        query = {"CustomID": message.tag, "ShowCustomID": "true", "Limit": "1"}
        return Request(method="GET", path="/v3/REST/message", headers=self._headers, query=query)

    def found(self, response: Response, message: Message) -> Finding:
        rows = response.fields.get("Data")
        if response.status != 200 or not isinstance(rows, list):
            return Unknown(f"HTTP {response.status}: {response.text}")
        row = _first(rows)
        if not row:
            return NotThere(reply(response, "no message with this CustomID"))
        if row.get("CustomID", message.tag) != message.tag:
            return Unknown("Mailjet gave another message than the one that was asked for")
        return Accepted(reply(response, f"found: {row.get('Status')}"), identifier(row.get("ID")))

    def ask(self) -> Request:
        return Request(method="GET", path="/v3/REST/myprofile", headers=self._headers)

    def checked(self, response: Response) -> Trouble | None:
        return checked(response, text=response.fields.get("ErrorMessage"))


def _mailbox(mailbox: Mailbox) -> dict[str, str]:
    return {"Email": mailbox.address, **({"Name": mailbox.name} if mailbox.name else {})}


def _first(value: object) -> dict[str, Any]:
    """Gives the first of a list of objects; an empty one when there is none."""
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}
