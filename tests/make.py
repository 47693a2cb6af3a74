"""Builders: plain functions with full defaults that put rows into a test's database."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text, update
from sqlalchemy.orm import Session

from console.accounts import passwords
from console.accounts import service as accounts_service
from console.accounts import store as accounts_store
from console.audience.models import ListMember, MailingList, Subscriber
from console.campaigns.models import Campaign, CampaignContent, CampaignCount
from console.content.compile import Compiled, compile_content
from console.content.header import Headers
from console.content.source import Recipient, Source
from console.inbox import service as inbox_service
from console.sends.models import Claim, Send


def content(
    *,
    subject: str = "News for {{ first_name }}",
    sender: str = "Ann Lee <news@example.com>",
    html: str = "<p>Hello {{ first_name }}</p>",
    text: str = "Hello {{ first_name }}\n",
) -> Compiled:
    """Compiled content with one merge field."""
    return compile_content(Source(subject=subject, sender=sender, html=html, text=text))


def recipient(
    values: Mapping[str, Any] | None = None,
    *,
    email: str = "rita@example.com",
    message_id: str = "<0123456789abcdef@mail.example.com>",
    dated_at: datetime = datetime(2027, 3, 4, 5, 6, 7, tzinfo=UTC),
    unsubscribe_url: str | None = "https://console.example.com/audience/unsubscribe/abc",
) -> Recipient:
    """A recipient with a first name."""
    return Recipient(
        email=email,
        values={"first_name": "Rita"} if values is None else values,
        message_id=message_id,
        dated_at=dated_at,
        unsubscribe_url=unsubscribe_url,
    )


def list_headers(*, list_id: str = "l1.t1.example.com", feedback_id: str = "7:t1:campaign:sendonce") -> Headers:
    """The header fields that are equal in a whole campaign."""
    return Headers(list_id=list_id, feedback_id=feedback_id)


SECRET_KEY = "test-key-" + "k" * 32
PASSWORD = "correct horse battery"
# argon2 is slow on purpose; one hash serves all users of all tests.
_PASSWORD_HASH = passwords.hash_password(PASSWORD)


def account(session: Session, slug: str = "acme") -> int:
    """The id of an account with a message type 'campaign'."""
    return accounts_service.add_account(session, slug).id


def user(session: Session, account_id: int, *, email: str = "mia@example.com", roles: tuple[str, ...]) -> int:
    """The id of a user who signs in with PASSWORD."""
    columns = {
        "email": email,
        "email_lower": email.lower(),
        "name": email.partition("@")[0].title(),
        "password_hash": _PASSWORD_HASH,
        "roles": list(roles),
    }
    made = accounts_store.insert_user(session, account_id, user=columns)
    assert made is not None
    return made.id


def mailing_list(session: Session, account_id: int, *, name: str = "News", emails: Iterable[str] = ()) -> int:
    """The id of a list with a confirmed subscriber for each address."""
    made = MailingList(account_id=account_id, name=name)
    session.add(made)
    session.flush()
    for email in emails:
        person = Subscriber(
            account_id=account_id, email=email, email_lower=email.lower(), attributes={"first_name": "Rita"}
        )
        session.add(person)
        session.flush()
        session.add(ListMember(account_id=account_id, list_id=made.id, subscriber_id=person.id))
    session.flush()
    return made.id


def campaign(
    session: Session,
    account_id: int,
    *,
    author_id: int,
    list_id: int,
    name: str = "Spring news",
    subject: str = "News for {{ first_name }}",
    html: str = "<p>Hello {{ first_name }}</p>",
    **columns: Any,
) -> int:
    """The id of a campaign; a draft unless `columns` (of campaigns) say otherwise."""
    made = Campaign(account_id=account_id, author_id=author_id, list_id=list_id, name=name, **columns)
    session.add(made)
    session.flush()
    session.add(
        CampaignContent(
            account_id=account_id,
            campaign_id=made.id,
            version=1,
            subject=subject,
            sender="Acme <news@example.com>",
            html=html,
            text="Hello {{ first_name }}",
            fields=["first_name"],
        )
    )
    session.flush()
    return made.id


def send(
    session: Session,
    account_id: int,
    *,
    email: str = "rita@example.com",
    campaign_id: int | None = None,
    status: str = "queued",
    **columns: Any,
) -> int:
    """The id of a row of the ledger with a subscriber of its own; the campaign's counter is kept."""
    key = uuid.uuid4().hex
    person = Subscriber(account_id=account_id, email=email, email_lower=email.lower(), external_id=key)
    session.add(person)
    session.flush()
    values = {
        "subscriber_id": person.id,
        "email": email,
        "email_lower": email.lower(),
        "lane": "bulk",
        "dedupe_key": f"campaign:{campaign_id}:{person.id}" if campaign_id else f"receipt:{key}",
        "message_id": f"<{key}@mail.example.com>",
        "correlation_id": key,
        "claimed_by": 1 if status == "sending" else None,
        **columns,
    }
    made = Send(account_id=account_id, campaign_id=campaign_id, status=status, **values)
    session.add(made)
    session.flush()
    if status == "sending":
        session.add(
            Claim(account_id=account_id, worker_id=values["claimed_by"], campaign_id=campaign_id, send_ids=[made.id])
        )
    if campaign_id is not None:
        session.execute(
            text(
                "INSERT INTO campaign_counts (account_id, campaign_id, slot) VALUES (:account_id, :campaign_id, 0)"
                " ON CONFLICT DO NOTHING"
            ),
            {"account_id": account_id, "campaign_id": campaign_id},
        )
        counter = getattr(CampaignCount, status)
        session.execute(
            update(CampaignCount)
            .where(CampaignCount.account_id == account_id, CampaignCount.campaign_id == campaign_id)
            .where(CampaignCount.slot == 0)
            .values({counter: counter + 1})
        )
    return made.id


def endpoint(session: Session, account_id: int, *, name: str = "shop", **wanted: Any) -> inbox_service.Made:
    """An endpoint of the inbox with its token; unsigned unless `wanted` (of inbox.service.Wanted) says otherwise."""
    return inbox_service.add_endpoint(
        session, account_id, user_id=None, name=name, wanted=inbox_service.Wanted(**wanted), secret_key=SECRET_KEY
    )
