"""Reports of Amazon SES (event publishing to SNS), and the classes of bounces that Resend has from it. Pure.

Source: docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html, .../notification-contents.html
(bounce types).
"""

import json
from typing import Any

from console.providers.reports import Bounce, Fact, Report, bounce_class, fields_of, iso, text_of, words

TAG_NAME = "sendonce"
_FACTS = {
    "Send": Fact.ACCEPTED,
    "Delivery": Fact.DELIVERED,
    "DeliveryDelay": Fact.DEFERRED,
    "Bounce": Fact.BOUNCED,
    "Complaint": Fact.COMPLAINED,
    "Open": Fact.OPENED,
    "Reject": Fact.DROPPED,
    "Rendering Failure": Fact.DROPPED,
}
_DETAILS = {
    "Delivery": "delivery",
    "DeliveryDelay": "deliveryDelay",
    "Bounce": "bounce",
    "Complaint": "complaint",
    "Open": "open",
    "Reject": "reject",
    "Rendering Failure": "failure",
}
_ABOUT_MESSAGE = frozenset({"MessageTooLarge", "ContentRejected", "AttachmentRejected"})


def read(envelope: Any) -> list[Report]:
    """Gives the reports of an SNS notification; none for its confirmations and for other events."""
    try:
        event = fields_of(json.loads(text_of_message(envelope)))
    except (ValueError, RecursionError):
        return []
    kind = text_of(event.get("eventType") or event.get("notificationType"))
    fact = _FACTS.get(kind)
    if fact is None:
        return []
    mail, told = fields_of(event.get("mail")), fields_of(event.get(_DETAILS.get(kind, "")))
    report = _report(fact, mail, told)
    return [report]


def text_of_message(envelope: Any) -> str:
    """Gives the text within the SNS envelope."""
    message = fields_of(envelope).get("Message")
    return message if isinstance(message, str) else ""


def bounce_of(kind: str, detail: str, told: str) -> Bounce:
    """Gives the class of a bounce by SES's type and subtype and the remote server's words."""
    if detail in _ABOUT_MESSAGE:
        return Bounce.POLICY
    if kind != "Permanent":
        return Bounce.SOFT
    return bounce_class(told, otherwise=Bounce.HARD)


def _report(fact: Fact, mail: dict[str, Any], told: dict[str, Any]) -> Report:
    recipients = told.get("bouncedRecipients") or told.get("delayedRecipients") or []
    first = fields_of(recipients[0]) if isinstance(recipients, list) and recipients else {}
    remote = words(first.get("status"), first.get("diagnosticCode"))
    kind, detail = text_of(told.get("bounceType")), text_of(told.get("bounceSubType"))
    return Report(
        fact=fact,
        tag=_tag(mail),
        provider_id=text_of(mail.get("messageId")),
        email=text_of(first.get("emailAddress")) or _destination(mail),
        happened_at=iso(told.get("timestamp")) or iso(mail.get("timestamp")),
        bounce=bounce_of(kind, detail, remote) if fact is Fact.BOUNCED else None,
        text=words(
            kind,
            detail,
            remote,
            told.get("complaintFeedbackType"),
            told.get("smtpResponse"),
            told.get("reason"),
            told.get("errorMessage"),
        ),
    )


def _tag(mail: dict[str, Any]) -> str:
    values = fields_of(mail.get("tags")).get(TAG_NAME)
    return text_of(values[0]) if isinstance(values, list) and values else ""


def _destination(mail: dict[str, Any]) -> str:
    listed = mail.get("destination")
    return text_of(listed[0]) if isinstance(listed, list) and listed else ""
