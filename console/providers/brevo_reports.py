"""Brevo's reports. Pure. Source: developers.brevo.com/docs/transactional-webhooks."""

from typing import Any

from console.providers.names import tagged_send_id
from console.providers.reports import Bounce, Fact, Report, bounce_class, epoch, fields_of, text_of, words

_FACTS = {
    "request": Fact.ACCEPTED,
    "sent": Fact.ACCEPTED,
    "delivered": Fact.DELIVERED,
    "deferred": Fact.DEFERRED,
    "soft_bounce": Fact.BOUNCED,
    "hard_bounce": Fact.BOUNCED,
    "invalid_email": Fact.BOUNCED,
    "blocked": Fact.DROPPED,
    "error": Fact.DROPPED,
    "spam": Fact.COMPLAINED,
    "complaint": Fact.COMPLAINED,
    "opened": Fact.OPENED,
    "unique_opened": Fact.OPENED,
}
_SOFT = frozenset({"soft_bounce"})


def read(body: Any) -> list[Report]:
    """Gives the reports of a delivery: one event, or several in its mode for batches."""
    events = body if isinstance(body, list) else [body]
    return [report for event in events if (report := _report(fields_of(event))) is not None]


def _report(event: dict[str, Any]) -> Report | None:
    name = text_of(event.get("event"))
    fact = _FACTS.get(name)
    if fact is None:
        return None
    reason = words(event.get("reason"))
    otherwise = Bounce.SOFT if name in _SOFT else Bounce.HARD
    return Report(
        fact=fact,
        tag=_tag(event),
        provider_id=text_of(event.get("message-id")),
        email=text_of(event.get("email")),
        # `date` is in the account's own zone, without saying which.
        happened_at=epoch(event.get("ts_epoch")) or epoch(event.get("ts_event")),
        bounce=bounce_class(reason, otherwise=otherwise) if fact is Fact.BOUNCED else None,
        text=words(name.replace("_", " "), reason),
    )


def _tag(event: dict[str, Any]) -> str:
    tags = event.get("tags")
    listed = [text_of(each) for each in tags] if isinstance(tags, list) else []
    return next((each for each in [*listed, text_of(event.get("tag"))] if tagged_send_id(each) is not None), "")
