"""Rules of the audience: stopping mail to an address, leaving a list and coming back. Imports are in csv_import.py."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from console.accounts import store as accounts_store
from console.audience import store
from console.audience.address import parse
from console.audience.unsubscribe import Ticket
from console.errors import Conflict, InvalidInput, NotFound

_DECIDED = {"unsubscribed": "left by a link in a mail", "complained": "complained about a mail"}


@dataclass(frozen=True)
class Reach:
    """Whom an unsubscribe link is about, and which list.

    `standing`: on, left (by a link: they may come back), or stopped (for another reason, or for all lists).
    """

    email: str
    email_lower: str
    list_name: str
    standing: str


def suppress(
    session: Session,
    account_id: int,
    *,
    email: str,
    reason: str,
    user_id: int | None = None,
    api_key_id: int | None = None,
) -> bool:
    """Stops all of the account's mail to an address, known or not; gives whether there was no such stop yet.

    Takes:  user_id or api_key_id, who does it, for the audit log.
    Raises: InvalidInput (fields email, reason).
    """
    address = parse(email)
    if not reason.strip():
        raise InvalidInput("Say why, so that whoever finds it later can tell.", field="reason")
    is_new = store.suppress(session, account_id, email_lower=address.email_lower, kind="manual", reason=reason.strip())
    if is_new:
        accounts_store.record(
            session,
            account_id,
            user_id=user_id,
            action="subscriber.suppress",
            object_id=address.email_lower,
            details={"reason": reason.strip()} | ({"api_key_id": api_key_id} if api_key_id else {}),
        )
    return is_new


def allow_again(session: Session, account_id: int, suppression_id: int, *, api_key_id: int) -> None:
    """Takes a suppression away that somebody typed in or a bounce left; for the audit log, by which API key.

    Raises: NotFound; Conflict for what the person decided: only they can take that back.
    """
    removed = store.remove_suppression(session, account_id, suppression_id)
    if removed is None:
        found = store.suppression_by_id(session, account_id, suppression_id)
        raise Conflict(
            f"The suppression {suppression_id} is there because the person {_DECIDED[found.kind]}:"
            " only they can take that back."
        )
    accounts_store.record(
        session,
        account_id,
        user_id=None,
        action="subscriber.allow_again",
        object_id=removed.email_lower,
        details={"api_key_id": api_key_id, "kind": removed.kind, "reason": removed.reason},
    )


def reach(session: Session, ticket: Ticket) -> Reach:
    """Gives whom and which list the link of an unsubscribe mail is about.

    Raises: NotFound when they are no longer on file.
    """
    subscriber = store.find_subscriber(session, ticket.account_id, ticket.subscriber_id)
    if subscriber is None:
        raise NotFound("We have no record of you any more, so no mail will come.")
    mailing_list = store.list_by_id(session, ticket.account_id, list_id=ticket.list_id)
    stops = store.suppressions_of(session, ticket.account_id, subscriber.email_lower)
    kinds = {stop.kind if stop.list_id else "all" for stop in stops if stop.list_id in {None, ticket.list_id}}
    standing = "on" if not kinds else "left" if kinds == {"unsubscribed"} else "stopped"
    return Reach(
        email=subscriber.email,
        email_lower=subscriber.email_lower,
        list_name=mailing_list.name,
        standing=standing,
    )


def leave(session: Session, ticket: Ticket) -> bool:
    """Takes the person off the list, by a suppression that names the send; gives whether they were still on it."""
    person = reach(session, ticket)
    return store.suppress(
        session,
        ticket.account_id,
        email_lower=person.email_lower,
        kind="unsubscribed",
        reason=f"left the list {person.list_name!r} by the link in a mail",
        list_id=ticket.list_id,
        send_id=ticket.send_id,
    )


def come_back(session: Session, ticket: Ticket) -> bool:
    """Undoes leave(), and only that: what a bounce, a complaint or a colleague stopped stays stopped.

    Gives: whether there was something to undo.
    """
    person = reach(session, ticket)
    lifted = store.lift(
        session,
        ticket.account_id,
        email_lower=person.email_lower,
        list_id=ticket.list_id,
        kind="unsubscribed",
    )
    if lifted is not None:
        accounts_store.record(
            session,
            ticket.account_id,
            user_id=None,
            action="subscriber.come_back",
            object_id=person.email_lower,
            details={
                "list_id": ticket.list_id,
                "had_left_at": lifted.created_at.isoformat(),
                "send_id": lifted.send_id,
            },
        )
    return lifted is not None


@dataclass(frozen=True)
class Description:
    """What is known about an address: the subscriber that campaigns would choose, and all that stops mail to it.

    `lists` are the names of the lists that somebody with this address is on, `unsubscribed` of those they have left.
    """

    id: int
    email: str
    email_lower: str
    external_id: str
    status: str
    attributes: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    lists: list[str]
    unsubscribed: list[str]
    suppressions: list[dict[str, Any]]
    sharing: list[dict[str, Any]]


def describe(session: Session, account_id: int, *, email: str) -> Description:
    """Gives what is known about the address.

    Raises: InvalidInput, NotFound when nobody has it.
    """
    email_lower = parse(email).email_lower
    people = store.subscribers_of(session, account_id, email_lower)
    stops = store.suppressions_of(session, account_id, email_lower)
    if not people:
        known = (
            " It is suppressed, though: no mail may go there." if any(stop.list_id is None for stop in stops) else ""
        )
        raise NotFound(f"No subscriber of this account has the address {email_lower}.{known}")
    # The earliest confirmed one, as the audience build has it.
    chosen = next((person for person in people if person.status == "confirmed"), people[0])
    places = store.memberships(
        session, account_id, subscriber_ids=[person.id for person in people], email_lower=email_lower
    )
    names = {place.list_id: place.name for place in places}
    return Description(
        id=chosen.id,
        email=chosen.email,
        email_lower=chosen.email_lower,
        external_id=chosen.external_id,
        status=chosen.status,
        attributes=chosen.attributes,
        created_at=chosen.created_at,
        updated_at=chosen.updated_at,
        lists=[place.name for place in places if place.left_at is None],
        unsubscribed=[place.name for place in places if place.left_at is not None],
        suppressions=[
            {
                "kind": stop.kind,
                "reason": stop.reason,
                "list": names.get(stop.list_id, str(stop.list_id)) if stop.list_id else None,
                "since": stop.created_at,
                "send_id": stop.send_id,
            }
            for stop in stops
        ],
        sharing=[
            {"id": person.id, "external_id": person.external_id, "status": person.status}
            for person in people
            if person is not chosen
        ],
    )
