"""Reports as the vendors send them, by what they say. Shapes after their documents (the design's providers.md, 2)."""

import json
from typing import Any

TAG = "so-7-0123456789abcdef"


def ses(kind: str, *, tag: str = TAG, message_id: str = "m-1", **detail: Any) -> dict[str, Any]:
    """An SNS envelope (unsigned) with an event of SES in it."""
    name = {"DeliveryDelay": "deliveryDelay", "Rendering Failure": "failure"}.get(kind, kind.lower())
    mail = {
        "messageId": "ses-1",
        "timestamp": "2026-12-01T10:00:00.000Z",
        "destination": ["rita@example.com"],
        "tags": {"ses:configuration-set": ["main"], "sendonce": [tag]},
    }
    event = {"eventType": kind, "mail": mail, name: {"timestamp": "2026-12-01T10:00:05.000Z", **detail}}
    return {"Type": "Notification", "MessageId": message_id, "TopicArn": "arn:aws:sns:x", "Message": json.dumps(event)}


def ses_bounce(kind: str = "Permanent", detail: str = "General", *, status: str = "", remote: str = "", **more: Any):
    recipient = {"emailAddress": "rita@example.com", "action": "failed", "status": status, "diagnosticCode": remote}
    told = {"bounceType": kind, "bounceSubType": detail, "bouncedRecipients": [recipient], "feedbackId": "f-1"}
    return ses("Bounce", **told, **more)


def resend(kind: str, *, tag: str = TAG, **data: Any) -> dict[str, Any]:
    told = {
        "email_id": "re-1",
        "created_at": "2026-12-01T09:59:59.000Z",
        "from": "Ann <news@example.com>",
        "to": ["rita@example.com"],
        "tags": {"sendonce": tag},
        **data,
    }
    return {"type": f"email.{kind}", "created_at": "2026-12-01T10:00:05.000Z", "data": told}


def resend_bounce(kind: str = "Permanent", detail: str = "General", remote: str = "", **more: Any):
    return resend(
        "bounced", bounce={"type": kind, "subType": detail, "message": "", "diagnosticCode": [remote]}, **more
    )


def brevo(event: str, *, tag: str = TAG, **more: Any) -> dict[str, Any]:
    return {
        "event": event,
        "email": "rita@example.com",
        "id": 26224,
        "date": "2026-12-01 11:00:05",
        "message-id": "<br-1@smtp-relay.mailin.fr>",
        "tags": [tag],
        "ts_event": 1796119205,
        "ts_epoch": 1796119205123,
        **more,
    }


def postmark(record: str, *, tag: str = TAG, **more: Any) -> dict[str, Any]:
    at = {"Delivery": "DeliveredAt", "Bounce": "BouncedAt", "SpamComplaint": "BouncedAt", "Open": "ReceivedAt"}
    who = "Email" if record in ("Bounce", "SpamComplaint") else "Recipient"
    return {
        "RecordType": record,
        "MessageID": "pm-1",
        "Tag": tag,
        "Metadata": {"sendonce": tag},
        who: "rita@example.com",
        at.get(record, "ReceivedAt"): "2026-12-01T05:00:05.1234567-05:00",
        **more,
    }


def mailjet(event: str, *, tag: str = TAG, **more: Any) -> dict[str, Any]:
    return {
        "event": event,
        "time": 1796119205,
        "MessageID": 19421777835146490,
        "email": "rita@example.com",
        "CustomID": tag,
        **more,
    }
