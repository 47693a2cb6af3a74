"""Postmark: knows no keys, but finds a message by the tag that we gave it.

Source: postmarkapp.com/developer/api/email-api, /messages-api (search), /overview (ErrorCode numbers).
"""

from console.providers.base import (
    Accepted,
    Answer,
    Capabilities,
    Finding,
    Message,
    NotThere,
    Trouble,
    Unknown,
    Untouched,
)
from console.providers.http_api import Request
from console.providers.http_replies import Response, checked, identifier, judge, reply, trouble
from console.providers.parts import parts_of

BASE_URL = "https://api.postmarkapp.com"
METADATA_NAME = "sendonce"
# ErrorCode numbers, which look like HTTP's and are others: the token; the sender; the account may not send.
_OURS = frozenset({10, 400, 401, 405, 412, 413})


class Postmark:
    """See http_api.Api."""

    capabilities = Capabilities(
        may_look_up=True, settle_s=60.0, horizon_s=45 * 86_400.0, has_reports=True, keeps_message_id=True
    )

    def __init__(self, *, token: str, stream: str):
        self._headers = {"X-Postmark-Server-Token": token}
        self._stream = stream

    def send(self, message: Message) -> Request:
        parts = parts_of(message)
        headers = [{"Name": name, "Value": value} for name, value in parts.headers]
        body = {
            "From": parts.sender_line,
            "To": parts.recipient.address,
            "Subject": parts.subject,
            "Tag": message.tag,
            "Metadata": {METADATA_NAME: message.tag},
            "MessageStream": self._stream,
            # Else it puts a Message-ID of its own in place of ours.
            "Headers": [*headers, {"Name": "X-PM-KeepID", "Value": "true"}],
        }
        if parts.html is not None:
            body["HtmlBody"] = parts.html
        if parts.text is not None:
            body["TextBody"] = parts.text
        return Request(path="/email", headers=self._headers, json=body)

    def judge(self, response: Response) -> Answer:
        code, text = response.fields.get("ErrorCode"), response.fields.get("Message")
        if response.status == 422 and code in _OURS:
            return Untouched(reply(response, text).text, trouble(response, text))
        return judge(response, text=text, provider_id=response.fields.get("MessageID"))

    def look_up(self, message: Message) -> Request:
        query = {"count": "1", "offset": "0", "tag": message.tag}
        return Request(method="GET", path="/messages/outbound", headers=self._headers, query=query)

    def found(self, response: Response, message: Message) -> Finding:
        messages = response.fields.get("Messages")
        if response.status != 200 or not isinstance(messages, list):
            return Unknown(f"HTTP {response.status}: {response.text}")
        for each in messages:
            # A search that ignored the tag would find somebody else's.
            if isinstance(each, dict) and each.get("Tag") == message.tag:
                return Accepted(reply(response, f"found: {each.get('Status')}"), identifier(each.get("MessageID")))
        return NotThere(reply(response, "no message with this tag"))

    def ask(self) -> Request:
        return Request(method="GET", path="/server", headers=self._headers)

    def checked(self, response: Response) -> Trouble | None:
        return checked(response, text=response.fields.get("Message"))
