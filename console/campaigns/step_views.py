"""Screens that move a campaign: each GET says exactly what will happen, each POST does it by compare-and-set."""

from datetime import UTC, datetime

from flask import request, url_for
from flask import session as cookie

from console import clock
from console.campaigns import service, store
from console.campaigns.forms import ApproveForm, ConfirmForm, ReasonForm, RejectForm
from console.campaigns.schedule import moment_of
from console.campaigns.states import STEPS, Change
from console.campaigns.views import campaigns, live, preview_of
from console.campaigns.words import WORDS
from console.errors import Conflict, InvalidInput
from console.web.database import transaction
from console.web.forms import Form
from console.web.guards import account_id, person, role
from console.web.pages import after_post, is_htmx, page, put_error


@campaigns.route("/<id:campaign_id>/submit", methods=["GET", "POST"])
@role("marketer")
def submit(campaign_id: int):
    """Hands a draft to the approvers."""
    form = ConfirmForm()
    if form.validate_on_submit():
        with transaction() as session:
            service.submit(session, account_id(), campaign_id, user_id=person().user_id)
        return _done(Change.SUBMIT, campaign_id)
    return _ask(Change.SUBMIT, campaign_id, form)


@campaigns.route("/<id:campaign_id>/approve", methods=["GET", "POST"])
@role("approver")
def approve(campaign_id: int):
    """Approves what the page showed, to start at once or at a time."""
    form = ApproveForm()
    if request.method == "GET":
        form.zone.data = cookie.get("zone") or "UTC"
    if not form.validate_on_submit():
        return _ask(Change.APPROVE, campaign_id, form)
    try:
        scheduled_for, zone = _schedule(form)
        if "check" in request.form:
            # "Show this time in UTC": the page comes back with it, without a script and without approving anything.
            return _ask(Change.APPROVE, campaign_id, form, scheduled_for=scheduled_for)
        with transaction() as session:
            service.approve(
                session,
                account_id(),
                campaign_id,
                user_id=person().user_id,
                scheduled_for=scheduled_for,
                zone=zone,
                fingerprint=form.fingerprint.data,
            )
    except InvalidInput as error:
        put_error(form, error)
        return _ask(Change.APPROVE, campaign_id, form)
    if zone:
        cookie["zone"] = zone
    return _done(Change.APPROVE, campaign_id)


@campaigns.route("/<id:campaign_id>/reject", methods=["GET", "POST"])
@role("approver")
def reject(campaign_id: int):
    """Sends a campaign back to its author, with the reason."""
    form = RejectForm()
    if form.validate_on_submit():
        with transaction() as session:
            service.reject(session, account_id(), campaign_id, user_id=person().user_id, reason=form.reason.data or "")
        return _done(Change.REJECT, campaign_id)
    return _ask(Change.REJECT, campaign_id, form)


@campaigns.route("/<id:campaign_id>/pause", methods=["GET", "POST"])
@role("marketer", "approver", "operator")
def pause(campaign_id: int):
    """Stops new claims for the campaign; messages already handed over go on."""
    form = ReasonForm()
    if form.validate_on_submit():
        with transaction() as session:
            service.pause(session, account_id(), campaign_id, user_id=person().user_id, reason=form.reason.data or None)
        return _done(Change.PAUSE, campaign_id)
    return _ask(Change.PAUSE, campaign_id, form)


@campaigns.route("/<id:campaign_id>/resume", methods=["GET", "POST"])
@role("marketer", "approver", "operator")
def resume(campaign_id: int):
    """Lets a paused campaign go on where it stopped."""
    form = ConfirmForm()
    if form.validate_on_submit():
        with transaction() as session:
            service.resume(session, account_id(), campaign_id, user_id=person().user_id)
        return _done(Change.RESUME, campaign_id)
    return _ask(Change.RESUME, campaign_id, form)


@campaigns.route("/<id:campaign_id>/cancel", methods=["GET", "POST"])
@role("marketer", "approver", "operator")
def cancel(campaign_id: int):
    """Stops a campaign for good; what was sent stays sent."""
    form = ReasonForm()
    if form.validate_on_submit():
        with transaction() as session:
            service.cancel(
                session, account_id(), campaign_id, user_id=person().user_id, reason=form.reason.data or None
            )
        return _done(Change.CANCEL, campaign_id)
    return _ask(Change.CANCEL, campaign_id, form)


def _done(change: Change, campaign_id: int):
    go_to = url_for("campaigns.show", campaign_id=campaign_id)
    return after_post(f"campaigns/{change}", go_to=go_to, **live(campaign_id))


def _ask(change: Change, campaign_id: int, form: Form, **values):
    """Gives the page that says what the change will touch; a form that came back wrong is a 422."""
    with transaction() as session:
        campaign = store.show(session, account_id(), campaign_id)
    if campaign.status not in STEPS[change].sources:
        raise Conflict(
            f"You can't {change} the campaign {campaign.name!r} in its present state: {WORDS[campaign.status].label}."
            " Open it to see what is possible."
        )
    if form.errors and is_htmx():
        raise InvalidInput(" ".join(words for errors in form.errors.values() for words in errors))
    values["preview"] = preview_of(campaign) if change is Change.APPROVE else None
    status = 422 if form.errors else 200
    return page(f"campaigns/{change}", campaign=campaign, form=form, words=WORDS, status=status, **values)


def _schedule(form: ApproveForm) -> tuple[datetime | None, str | None]:
    """Gives the moment and zone that the form asks for; nothing for at once."""
    if form.when.data != "later" or form.date.data is None or form.time.data is None:
        return None, None
    try:
        scheduled_for = moment_of(form.date.data, form.time.data, form.zone.data)
    except InvalidInput as error:
        raise InvalidInput(f"{error} On this page you can also choose the zone UTC.", field=error.field) from None
    if scheduled_for <= clock.now():
        raise InvalidInput(
            f"That was {scheduled_for.astimezone(UTC):%d %b %Y, %H:%M} UTC and is over."
            " Choose a later time, or start at once.",
            field="time",
        )
    return scheduled_for, form.zone.data
