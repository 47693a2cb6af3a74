"""Resend's reports. Pure. Source: resend.com/docs/webhooks/event-types; the classes of bounces are Amazon's."""

from typing import Any

from console.providers.amazon_reports import TAG_NAME, bounce_of
from console.providers.reports import Fact, Report, fields_of, iso, text_of, words

_FACTS = {
    "email.sent": Fact.ACCEPTED,
    "email.delivered": Fact.DELIVERED,
    "email.delivery_delayed": Fact.DEFERRED,
    "email.bounced": Fact.BOUNCED,
    "email.complained": Fact.COMPLAINED,
    "email.opened": Fact.OPENED,
    "email.failed": Fact.DROPPED,
    "email.suppressed": Fact.DROPPED,
}


def read(event: Any) -> list[Report]:
    """Gives the report of an event; none for those that say nothing of a message of ours."""
    fact = _FACTS.get(text_of(fields_of(event).get("type")))
    if fact is None:
        return []
    told = fields_of(event.get("data"))
    bounce = fields_of(told.get("bounce"))
    kind, detail = text_of(bounce.get("type")), text_of(bounce.get("subType"))
    codes = bounce.get("diagnosticCode")
    remote = words(*(codes if isinstance(codes, list) else [codes]), bounce.get("message"))
    to = told.get("to")
    return [
        Report(
            fact=fact,
            tag=_tag(told.get("tags")),
            provider_id=text_of(told.get("email_id")),
            email=text_of(to[0]) if isinstance(to, list) and to else "",
            happened_at=iso(event.get("created_at")),
            bounce=bounce_of(kind, detail, remote) if fact is Fact.BOUNCED else None,
            text=words(kind, detail, remote, fields_of(told.get("failed")).get("reason")),
        )
    ]


def _tag(tags: Any) -> str:
    """Tags come as an object in reports, and as a list of names and values where they are sent."""
    if isinstance(tags, list):
        pairs = (fields_of(each) for each in tags)
        return next((text_of(each.get("value")) for each in pairs if each.get("name") == TAG_NAME), "")
    return text_of(fields_of(tags).get(TAG_NAME))
