"""What each vendor's API looks like from outside: paths, fields, words, how it remembers keys and finds messages.

Written after the vendors' documents (the design's providers.md, 1), not after our adapters.
"""

import base64
import email
from dataclasses import dataclass

from peers.vendor import SECRET, Asked, Said, Taken


class Resend:
    send_path = "/emails"
    window_s = 24 * 3600.0

    def is_known(self, asked: Asked) -> bool:
        return asked.headers.get("authorization") == f"Bearer {SECRET}"

    def key(self, asked: Asked) -> str:
        return asked.headers.get("idempotency-key", "")

    def tag(self, asked: Asked) -> str:
        return asked.fields["tags"][0]["value"]

    def recipient(self, asked: Asked) -> str:
        return asked.fields["to"][0]

    def took(self, taken: Taken) -> Said:
        return Said(200, {"id": taken.id})

    def met_again(self, taken: Taken) -> Said:
        return self.took(taken)

    def listed(self, taken: list[Taken], asked: Asked) -> Said | None:
        return Said(200, {"data": []}) if asked.path == "/domains" else None

    def stranger(self) -> Said:
        return Said(401, {"statusCode": 401, "name": "validation_error", "message": f"API key {SECRET} is invalid"})


class Brevo:
    send_path = "/smtp/email"
    window_s = 15 * 60.0

    def is_known(self, asked: Asked) -> bool:
        return asked.headers.get("api-key") == SECRET

    def key(self, asked: Asked) -> str:
        return asked.fields["headers"].get("idempotencyKey", "")

    def tag(self, asked: Asked) -> str:
        return asked.fields["tags"][0]

    def recipient(self, asked: Asked) -> str:
        return asked.fields["to"][0]["email"]

    def took(self, taken: Taken) -> Said:
        return Said(201, {"messageId": taken.id})

    def met_again(self, taken: Taken) -> Said:
        return Said(400, {"code": "duplicate_request", "message": "Request with this idempotency key was made already"})

    def listed(self, taken: list[Taken], asked: Asked) -> Said | None:
        if asked.path == "/account":
            return Said(200, {"email": "ann@example.com"})
        if asked.path != "/smtp/statistics/events":
            return None
        found = [each for each in taken if each.tag == asked.query["tags"]]
        events = [
            {"email": each.recipient, "event": "requests", "tag": each.tag, "messageId": each.id} for each in found
        ]
        return Said(200, {"events": events} if events else {})

    def stranger(self) -> Said:
        return Said(401, {"code": "unauthorized", "message": f"Key {SECRET} not found"})


class Postmark:
    send_path = "/email"
    window_s = 0.0

    def is_known(self, asked: Asked) -> bool:
        return asked.headers.get("x-postmark-server-token") == SECRET

    def key(self, asked: Asked) -> str:
        return ""

    def tag(self, asked: Asked) -> str:
        return asked.fields["Tag"]

    def recipient(self, asked: Asked) -> str:
        return asked.fields["To"]

    def took(self, taken: Taken) -> Said:
        return Said(200, {"To": taken.recipient, "MessageID": taken.id, "ErrorCode": 0, "Message": "OK"})

    def met_again(self, taken: Taken) -> Said:
        raise AssertionError("it knows no keys")

    def listed(self, taken: list[Taken], asked: Asked) -> Said | None:
        if asked.path == "/server":
            return Said(200, {"ID": 1})
        if asked.path != "/messages/outbound":
            return None
        found = [
            {"Tag": each.tag, "MessageID": each.id, "Status": "Sent"}
            for each in taken
            if each.tag == asked.query["tag"]
        ]
        return Said(200, {"TotalCount": len(found), "Messages": found[: int(asked.query["count"])]})

    def stranger(self) -> Said:
        return Said(401, {"ErrorCode": 10, "Message": f"No Account or Server with token {SECRET}"})


class Mailjet:
    send_path = "/v3.1/send"
    window_s = 0.0

    def is_known(self, asked: Asked) -> bool:
        credentials = base64.b64encode(f"public:{SECRET}".encode()).decode()
        return asked.headers.get("authorization") == f"Basic {credentials}"

    def key(self, asked: Asked) -> str:
        return ""

    def tag(self, asked: Asked) -> str:
        return asked.fields["Messages"][0]["CustomID"]

    def recipient(self, asked: Asked) -> str:
        return asked.fields["Messages"][0]["To"][0]["Email"]

    def took(self, taken: Taken) -> Said:
        number = int(taken.id.removeprefix("id-"))
        to = [{"Email": taken.recipient, "MessageUUID": "u", "MessageID": number}]
        return Said(200, {"Messages": [{"Status": "success", "CustomID": taken.tag, "To": to}]})

    def met_again(self, taken: Taken) -> Said:
        raise AssertionError("it knows no keys")

    def listed(self, taken: list[Taken], asked: Asked) -> Said | None:
        if asked.path == "/v3/REST/myprofile":
            return Said(200, {"Count": 1, "Data": [{}]})
        if asked.path != "/v3/REST/message":
            return None
        found = [
            {"ID": int(each.id.removeprefix("id-")), "CustomID": each.tag, "Status": "sent"}
            for each in taken
            if each.tag == asked.query["CustomID"]
        ]
        return Said(200, {"Count": len(found), "Data": found})

    def stranger(self) -> Said:
        return Said(401, {"StatusCode": 401, "ErrorMessage": f"API key authentication failure for {SECRET}"})


@dataclass
class Ses:
    send_path: str = "/v2/email/outbound-emails"
    window_s: float = 0.0

    def is_known(self, asked: Asked) -> bool:
        # Signatures are moto's business; here the name of the key is enough.
        return f"Credential={SECRET}/" in asked.headers.get("authorization", "")

    def key(self, asked: Asked) -> str:
        return ""

    def tag(self, asked: Asked) -> str:
        return asked.fields["EmailTags"][0]["Value"]

    def recipient(self, asked: Asked) -> str:
        wire = base64.b64decode(asked.fields["Content"]["Raw"]["Data"])
        return email.message_from_bytes(wire)["To"]

    def took(self, taken: Taken) -> Said:
        return Said(200, {"MessageId": taken.id})

    def met_again(self, taken: Taken) -> Said:
        raise AssertionError("it knows no keys")

    def listed(self, taken: list[Taken], asked: Asked) -> Said | None:
        return Said(200, {"SendingEnabled": True}) if asked.path == "/v2/email/account" else None

    def stranger(self) -> Said:
        return ses_error(403, "UnrecognizedClientException", f"The security token {SECRET} is invalid.")


def ses_error(status: int, name: str, message: str) -> Said:
    """An error as AWS's REST-JSON has it."""
    return Said(status, {"message": message}, {"x-amzn-errortype": name})
