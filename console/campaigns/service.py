"""The life of a campaign: who may change it, when, and what is written down about it. The SQL is in store.py.

Every change is a compare-and-set. Who loses one gets a Conflict that names the present state.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.accounts import store as accounts_store
from console.audience import store as audience
from console.campaigns import fingerprint as fingerprints
from console.campaigns import store
from console.content.compile import compile_content
from console.content.source import Source
from console.content.text import text_from_html
from console.errors import Conflict, Forbidden, InvalidInput
from console.sends import store as sends

# So many queued sends are cancelled with the campaign itself; a tick cancels the rest.
CANCEL_AT_ONCE = 10_000
NAME_CHARS_LIMIT = 200

_MAY_WRITE = ("marketer",)
_MAY_APPROVE = ("approver",)
_MAY_STOP = ("marketer", "approver", "operator")

_STATE_WORDS = {
    "draft": "it is a draft",
    "submitted": "it waits for approval",
    "approved": "it is approved and waits for its time",
    "sending": "it is being sent",
    "paused": "it is paused",
    "sent": "it has been sent",
    "cancelled": "it has been cancelled",
}


@dataclass(frozen=True)
class Draft:
    """What an author writes. An empty text part is made from the HTML part."""

    name: str
    list_id: int
    subject: str
    sender: str
    html: str
    text: str = ""


def create(session: Session, account_id: int, *, author_id: int, draft: Draft) -> int:
    """Makes a campaign, a draft; gives its id.

    Raises: InvalidInput naming name, list_id, subject, sender, html or text (with its line); Forbidden.
    """
    accounts.acting_user(session, account_id, author_id, *_MAY_WRITE, doing="write campaigns")
    columns, content = _checked(session, account_id, draft)
    campaign_id = store.insert_campaign(session, account_id, columns={**columns, "author_id": author_id})
    store.insert_content(session, account_id, campaign_id, version=1, columns=content)
    _record(session, account_id, author_id, "campaign.create", campaign_id, name=columns["name"])
    return campaign_id


def edit(session: Session, account_id: int, campaign_id: int, *, author_id: int, draft: Draft) -> int:
    """Writes the next version; the campaign is a draft again, its approval void, who changed what is sent its author.

    Gives:  the version.
    Raises: as create, and Conflict once it is being sent; NotFound.
    """
    accounts.acting_user(session, account_id, author_id, *_MAY_WRITE, doing="write campaigns")
    columns, content = _checked(session, account_id, draft)
    version = store.edit(session, account_id, campaign_id, columns={**columns, "author_id": author_id}, content=content)
    if version is None:
        _lost(session, account_id, campaign_id, "edited")
    store.insert_content(session, account_id, campaign_id, version=version, columns=content)
    _record(session, account_id, author_id, "campaign.edit", campaign_id, version=version)
    return version


def submit(session: Session, account_id: int, campaign_id: int, *, user_id: int) -> None:
    """Puts a draft before the approvers, with the fingerprint of its content and the size of its list.

    Raises: InvalidInput when nobody on the list would get it; Conflict, Forbidden, NotFound.
    """
    accounts.acting_user(session, account_id, user_id, *_MAY_WRITE, doing="submit campaigns")
    campaign = store.show(session, account_id, campaign_id)
    estimate = audience.count_confirmed(session, account_id, list_id=campaign.list_id)
    if campaign.status == "draft" and estimate == 0:
        raise InvalidInput(
            f"The list {campaign.list_name!r} has no confirmed subscriber, so nobody would get this campaign."
            " Import subscribers into it first, or choose another list.",
            field="list_id",
        )
    fingerprint = _fingerprint(campaign)
    is_done = store.submit(
        session,
        account_id,
        campaign_id,
        version=campaign.version,
        fingerprint=fingerprint,
        audience_estimate=estimate,
    )
    if not is_done:
        _lost(session, account_id, campaign_id, "submitted")
    _record(session, account_id, user_id, "campaign.submit", campaign_id, fingerprint=fingerprint, estimate=estimate)


def approve(
    session: Session,
    account_id: int,
    campaign_id: int,
    *,
    user_id: int,
    scheduled_for: datetime | None = None,
    zone: str | None = None,
    fingerprint: str | None = None,
) -> datetime:
    """Approves a submitted campaign for a time; a time in the past, or none, means now.

    Takes:  scheduled_for, aware; zone, the IANA name that it was typed in; fingerprint, of the content that the
            approver saw (None: of whatever is submitted now).
    Gives:  when it may start.
    Raises: Conflict, also when the content has changed since the approver saw it; Forbidden, also for the author.
    """
    user = accounts.acting_user(session, account_id, user_id, *_MAY_APPROVE, doing="approve campaigns")
    campaign = store.show(session, account_id, campaign_id)
    if campaign.requires_second_person and campaign.author_id == user.id:
        raise Forbidden("You wrote this campaign, so somebody else has to approve it.")
    seen = campaign.fingerprint if fingerprint is None else fingerprint
    # An approval is of the content as it stands in the database, not only of a value that was kept beside it.
    if campaign.status == "submitted" and not seen == campaign.fingerprint == _fingerprint(campaign):
        raise Conflict("The campaign has changed since you opened this page. Open it again and read it anew.")
    moment = store.database_now(session)
    starts_at = max(scheduled_for or moment, moment)
    columns = {
        "approver_id": user_id,
        "fingerprint": seen,
        "scheduled_for": starts_at,
        "schedule_zone": zone,
        "approved_fingerprint": fingerprints.of_approval(
            content=seen or "", approver_id=user_id, scheduled_for=starts_at
        ),
    }
    if not store.approve(session, account_id, campaign_id, columns=columns):
        _lost(session, account_id, campaign_id, "approved")
    details = {"fingerprint": seen, "scheduled_for": starts_at.isoformat(), "zone": zone, "version": campaign.version}
    _record(session, account_id, user_id, "campaign.approve", campaign_id, **details)
    return starts_at


def reject(session: Session, account_id: int, campaign_id: int, *, user_id: int, reason: str) -> None:
    """Gives a submitted or approved campaign back to its author, a draft with the reason as its note.

    Raises: InvalidInput without a reason; Conflict, Forbidden, NotFound.
    """
    accounts.acting_user(session, account_id, user_id, *_MAY_APPROVE, doing="reject campaigns")
    if not reason.strip():
        raise InvalidInput("Say why, so that the author knows what to change.", field="reason")
    if not store.reject(session, account_id, campaign_id, note=reason.strip()):
        _lost(session, account_id, campaign_id, "rejected")
    _record(session, account_id, user_id, "campaign.reject", campaign_id, reason=reason.strip())


def pause(session: Session, account_id: int, campaign_id: int, *, user_id: int, reason: str | None = None) -> None:
    """Stops new hand-overs of a campaign that is being sent; what is handed over already goes on.

    Raises: Conflict, Forbidden, NotFound.
    """
    accounts.acting_user(session, account_id, user_id, *_MAY_STOP, doing="pause campaigns")
    if not store.pause(session, account_id, campaign_id, note=_words(reason)):
        _lost(session, account_id, campaign_id, "paused")
    _record(session, account_id, user_id, "campaign.pause", campaign_id, reason=_words(reason))


def resume(session: Session, account_id: int, campaign_id: int, *, user_id: int, reason: str | None = None) -> None:
    """Lets a paused campaign send on, or one that was held because it was late begin.

    Raises: Conflict, Forbidden, NotFound.
    """
    accounts.acting_user(session, account_id, user_id, *_MAY_STOP, doing="resume campaigns")
    resumed = store.resume(session, account_id, campaign_id)
    if resumed is None:
        _lost(session, account_id, campaign_id, "resumed")
    correlation_id, is_start = resumed
    if is_start:
        store.insert_trigger(
            session,
            account_id,
            campaign_id=campaign_id,
            source="manual_admin",
            code_path="campaigns.service.resume",
            correlation_id=correlation_id,
        )
    store.wake_workers(session)
    _record(session, account_id, user_id, "campaign.resume", campaign_id, reason=_words(reason))


def cancel(session: Session, account_id: int, campaign_id: int, *, user_id: int, reason: str | None = None) -> None:
    """Stops a campaign for good: what is queued is cancelled, what is handed over already goes on.

    Raises: Conflict, Forbidden, NotFound.
    """
    accounts.acting_user(session, account_id, user_id, *_MAY_STOP, doing="cancel campaigns")
    if not store.cancel(session, account_id, campaign_id, note=_words(reason)):
        _lost(session, account_id, campaign_id, "cancelled")
    sends.cancel_campaign_rows(session, account_id, campaign_id=campaign_id, limit=CANCEL_AT_ONCE)
    _record(session, account_id, user_id, "campaign.cancel", campaign_id, reason=_words(reason))


def _checked(session: Session, account_id: int, draft: Draft) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gives the columns of the campaign and of its content, checked and compiled once."""
    name = draft.name.strip()
    if not name:
        raise InvalidInput("Give the campaign a name; only your colleagues see it.", field="name")
    if len(name) > NAME_CHARS_LIMIT:
        raise InvalidInput(f"The name has {len(name):,} characters; it may have {NAME_CHARS_LIMIT}.", field="name")
    audience.list_by_id(session, account_id, list_id=draft.list_id)
    text = draft.text if draft.text.strip() else text_from_html(draft.html)
    source = Source(subject=draft.subject.strip(), sender=draft.sender.strip(), html=draft.html, text=text)
    fields = sorted(compile_content(source).fields)
    content = {
        "subject": source.subject,
        "sender": source.sender,
        "html": source.html,
        "text": source.text,
        "fields": fields,
    }
    return {"name": name, "list_id": draft.list_id}, content


def _fingerprint(campaign: store.CampaignRow) -> str:
    return fingerprints.of_content(
        subject=campaign.subject,
        sender=campaign.sender,
        html=campaign.html,
        text=campaign.text,
        list_id=campaign.list_id,
    )


def _lost(session: Session, account_id: int, campaign_id: int, done: str) -> NoReturn:
    # A look after the loss, only for the words; the decision has been made by the statement that changed nothing.
    campaign = store.show(session, account_id, campaign_id)
    raise Conflict(f"Campaign {campaign_id} can't be {done}: {_STATE_WORDS[campaign.status]}. Look at it again.")


def _record(
    session: Session, account_id: int, user_id: int, action: str, campaign_id: int, **details: str | int | None
) -> None:
    accounts_store.record(session, account_id, user_id=user_id, action=action, object_id=campaign_id, details=details)


def _words(reason: str | None) -> str | None:
    return (reason or "").strip() or None
