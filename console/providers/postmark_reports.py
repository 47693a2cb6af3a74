"""Postmark's reports. Pure. Source: postmarkapp.com/developer/webhooks/webhooks-overview, its Bounce API for types."""

from typing import Any

from console.providers.reports import Bounce, Fact, Report, bounce_class, fields_of, iso, text_of, words

METADATA_NAME = "sendonce"
_FACTS = {
    "Delivery": Fact.DELIVERED,
    "Bounce": Fact.BOUNCED,
    "SpamComplaint": Fact.COMPLAINED,
    "Open": Fact.OPENED,
}
_HARD = frozenset({"HardBounce", "BadEmailAddress"})
_POLICY = frozenset({"Blocked", "SpamNotification", "DMARCPolicy", "TemplateRenderingFailed", "VirusNotification"})


def read(event: Any) -> list[Report]:
    """Gives the report of an event; none for those that say nothing of a message of ours."""
    fields = fields_of(event)
    fact = _FACTS.get(text_of(fields.get("RecordType")))
    if fact is None:
        return []
    kind = text_of(fields.get("Type"))
    remote = words(fields.get("Details"))
    times = (iso(fields.get(name)) for name in ("DeliveredAt", "BouncedAt", "ReceivedAt"))
    return [
        Report(
            fact=fact,
            tag=text_of(fields_of(fields.get("Metadata")).get(METADATA_NAME)) or text_of(fields.get("Tag")),
            provider_id=text_of(fields.get("MessageID")),
            email=text_of(fields.get("Recipient")) or text_of(fields.get("Email")),
            happened_at=next((at for at in times if at is not None), None),
            bounce=_bounce(kind, remote) if fact is Fact.BOUNCED else None,
            text=words(kind, remote or fields.get("Description")),
        )
    ]


def _bounce(kind: str, remote: str) -> Bounce:
    if kind in _POLICY:
        return Bounce.POLICY
    return bounce_class(remote, otherwise=Bounce.HARD) if kind in _HARD else Bounce.SOFT
