"""Mailjet's reports. Pure. Source: dev.mailjet.com/email/guides/webhooks (Event API), with its table of errors."""

from typing import Any

from console.providers.reports import Bounce, Fact, Report, bounce_class, epoch, fields_of, text_of, words

_FACTS = {
    "sent": Fact.DELIVERED,  # "the message was delivered to the recipient's server"
    "bounce": Fact.BOUNCED,
    "blocked": Fact.DROPPED,
    "spam": Fact.COMPLAINED,
    "open": Fact.OPENED,
}
# What an error is about; spam, content, system and mailjet are not the address.
_ABOUT_ADDRESS = frozenset({"recipient", "domain"})


def read(body: Any) -> list[Report]:
    """Gives the reports of a delivery: one event, or a group of them."""
    events = body if isinstance(body, list) else [body]
    return [report for event in events if (report := _report(fields_of(event))) is not None]


def _report(event: dict[str, Any]) -> Report | None:
    fact = _FACTS.get(text_of(event.get("event")))
    if fact is None:
        return None
    about, error = text_of(event.get("error_related_to")), text_of(event.get("error"))
    remote = words(event.get("comment"), event.get("smtp_reply"))
    return Report(
        fact=fact,
        tag=text_of(event.get("CustomID")),
        provider_id=text_of(event.get("MessageID")),
        email=text_of(event.get("email")),
        happened_at=epoch(event.get("time")),
        bounce=_bounce(event.get("hard_bounce") is True, about, remote) if fact is Fact.BOUNCED else None,
        text=words(about, error, remote, event.get("source")),
    )


def _bounce(is_hard: bool, about: str, remote: str) -> Bounce:
    if about and about not in _ABOUT_ADDRESS:
        return Bounce.POLICY
    return bounce_class(remote, otherwise=Bounce.HARD if is_hard else Bounce.SOFT)
