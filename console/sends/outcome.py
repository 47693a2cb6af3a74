"""What providers report later: settles what is in doubt, stands beside the state, stops mail to some addresses.

Reports come twice, in any order, and before the provider's own answer was recorded: each is written once, and what it
proves holds whenever it comes. SQL is in report_store.py.
"""

from collections.abc import Collection
from dataclasses import dataclass

import structlog
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from console.audience import store as audience_store
from console.db import transaction
from console.providers.names import names_of, tagged_send_id
from console.providers.reports import Bounce, Fact, Report
from console.sends import report_store
from console.sends.report_store import Sent

log = structlog.get_logger(__name__)

OPEN_FACTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What a report did. `send_id` None: it is about none of our sends."""

    is_new: bool
    send_id: int | None = None
    is_settled: bool = False
    is_suppressed: bool = False


def report(
    session: Session,
    account_id: int,
    told: Report,
    *,
    provider: str,
    event_key: str,
    inbox_event_id: int | None = None,
) -> Noted:
    """Writes a report down and does what follows from it; nothing when it was written down before.

    Takes: provider, its name in the account; event_key, one for each fact that the provider reports.
    """
    send = send_of(session, account_id, told.tag)
    fact_id = report_store.insert_fact(
        session,
        account_id,
        told,
        provider=provider,
        event_key=event_key,
        send_id=send.id if send else None,
        inbox_event_id=inbox_event_id,
    )
    if fact_id is None:
        return Noted(is_new=False, send_id=send.id if send else None)
    if send is None:
        return Noted(is_new=True)
    is_settled = _settle(session, account_id, send.id, provider=provider, fact=told.fact, provider_id=told.provider_id)
    if not is_settled:
        report_store.leave_open(session, account_id, fact_id)
    is_suppressed = _suppress(session, account_id, send, told, provider=provider)
    log.info(
        "provider.report",
        correlation_id=send.correlation_id,
        account_id=account_id,
        send_id=send.id,
        message_id=send.message_id,
        provider=provider,
        fact=told.fact.value,
        provider_id=told.provider_id,
    )
    return Noted(is_new=True, send_id=send.id, is_settled=is_settled, is_suppressed=is_suppressed)


def send_of(session: Session, account_id: int, tag: str) -> Sent | None:
    """Gives the send whose tag it is: the whole tag, which nobody else can make up from a number."""
    send_id = tagged_send_id(tag)
    if send_id is None or send_id >= 2**63:
        return None
    send = report_store.find_send(session, account_id, send_id)
    if send is None or names_of(account_id, send.id, send.message_id).tag != tag:
        return None
    return send


def tag_of_message(session: Session, account_id: int, *, message_id: str, addresses: Collection[str]) -> str:
    """Gives the tag of the send with this Message-ID to one of these addresses; empty when there is none."""
    if not message_id or not addresses:
        return ""
    send = report_store.find_message(session, account_id, message_id=message_id, emails=addresses)
    return "" if send is None else names_of(account_id, send.id, send.message_id).tag


def settle_reported(engine: Engine) -> int:
    """Settles sends whose report came while they were on their way, and that are in doubt now; gives how many facts.

    For a tick: idempotent, in any number of processes.
    """
    with transaction(engine) as session:
        facts = report_store.take_open(session, limit=OPEN_FACTS)
        for each in facts:
            _settle(
                session,
                each.account_id,
                each.send_id,
                provider=each.provider,
                fact=Fact(each.fact),
                provider_id=each.provider_id,
            )
            report_store.close(session, each.account_id, each.id)
    return len(facts)


def _settle(session: Session, account_id: int, send_id: int, *, provider: str, fact: Fact, provider_id: str) -> bool:
    reply = f"{provider} reported that the message is {_WORDS[fact]}"
    return report_store.settle(session, account_id, send_id, reply=reply, provider_id=provider_id)


_WORDS = {
    Fact.ACCEPTED: "accepted",
    Fact.DEFERRED: "accepted, and its delivery delayed",
    Fact.DELIVERED: "delivered",
    Fact.BOUNCED: "accepted, and bounced",
    Fact.COMPLAINED: "delivered, and complained about",
    Fact.OPENED: "delivered, and opened",
    Fact.DROPPED: "accepted, and not sent on",
}


def _suppress(session: Session, account_id: int, send: Sent, told: Report, *, provider: str) -> bool:
    """Stops mail to an address that there is not, or whose owner complained; nothing else is about the address."""
    if told.fact is Fact.COMPLAINED:
        kind, reason = "complained", f"marked as spam, as {provider} reported"
    elif told.fact is Fact.BOUNCED and told.bounce is Bounce.HARD:
        kind, reason = "bounced", f"there is no such address, as {provider} reported"
    else:
        return False
    return audience_store.suppress(
        session,
        account_id,
        email_lower=send.email_lower,
        kind=kind,
        reason=f"{reason}: {told.text}" if told.text else reason,
        send_id=send.id,
    )
