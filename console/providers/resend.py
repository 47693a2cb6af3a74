"""Resend: answers a key that it knows with the first answer again, for 24 hours.

Source: resend.com/docs/api-reference/emails/send-email, .../errors, /docs/dashboard/emails/idempotency-keys.
"""

from console.providers.base import (
    Answer,
    Capabilities,
    Finding,
    Idempotency,
    Message,
    NoAnswer,
    Trouble,
    Unknown,
    Untouched,
)
from console.providers.http_api import Request
from console.providers.http_replies import Response, asked_wait_s, checked, judge, reply, trouble
from console.providers.parts import parts_of

BASE_URL = "https://api.resend.com"
TAG_NAME = "sendonce"
# Out of messages for the day or month: a wait of seconds, which 429 suggests, does not help.
_QUOTA = frozenset({"daily_quota_exceeded", "monthly_quota_exceeded"})
_IN_FLIGHT_WAIT_S = 5.0


class Resend:
    """See http_api.Api."""

    capabilities = Capabilities(idempotency=Idempotency.REPLAY, window_s=24 * 3600.0, has_reports=True)

    def __init__(self, *, api_key: str):
        self._headers = {"Authorization": f"Bearer {api_key}"}

    def send(self, message: Message) -> Request:
        parts = parts_of(message)
        body = {
            "from": parts.sender_line,
            "to": [parts.recipient.address],
            "subject": parts.subject,
            "headers": dict(parts.headers),
            "tags": [{"name": TAG_NAME, "value": message.tag}],
        }
        if parts.html is not None:
            body["html"] = parts.html
        if parts.text is not None:
            body["text"] = parts.text
        return Request(path="/emails", headers={**self._headers, "Idempotency-Key": message.key}, json=body)

    def judge(self, response: Response) -> Answer:
        name, text = response.fields.get("name"), response.fields.get("message")
        if response.status == 409:
            # Either the first is still under way, or it was another body under this key: something was taken in both.
            is_in_flight = name == "concurrent_idempotent_requests"
            wait_s = (asked_wait_s(response) or _IN_FLIGHT_WAIT_S) if is_in_flight else None
            return NoAnswer(reply(response, text), wait_s=wait_s)
        if response.status == 429 and name in _QUOTA:
            return Untouched(reply(response, text).text, trouble(response, text))
        return judge(response, text=text, provider_id=response.fields.get("id"))

    def look_up(self, message: Message) -> None:
        return None

    def found(self, response: Response, message: Message) -> Finding:
        return Unknown("Resend can't be asked for a message by our own name")

    def ask(self) -> Request:
        return Request(method="GET", path="/domains", headers=self._headers)

    def checked(self, response: Response) -> Trouble | None:
        # A key that may only send is told so when it asks for anything else.
        if response.status == 401 and response.fields.get("name") == "restricted_api_key":
            return None
        return checked(response, text=response.fields.get("message"))
