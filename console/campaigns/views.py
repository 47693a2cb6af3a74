"""Screens of campaigns: the list, writing, one campaign with its progress. What moves one is in step_views.py."""

from flask import Blueprint, request, url_for
from markupsafe import Markup

from console.audience.store import lists
from console.campaigns import service, store
from console.campaigns.forms import CampaignForm
from console.campaigns.preview import Preview, preview
from console.campaigns.preview_store import example
from console.campaigns.service import Draft
from console.campaigns.states import STEPS, Change, State
from console.campaigns.store import CampaignRow
from console.campaigns.words import WORDS
from console.content.source import Source
from console.content.text import text_from_html
from console.errors import Conflict, InvalidInput
from console.providers.trouble_store import troubles
from console.sends.words import WORDS as SEND_WORDS
from console.web.database import transaction
from console.web.forms import SelectChoice
from console.web.guards import account_id, person, role
from console.web.headers import shows_mail
from console.web.pages import after_post, fragment, page, put_error
from console.web.paging import PAGE_ROWS, asked_number, cut

NOBODY = "somebody@example.com"

campaigns = Blueprint("campaigns", __name__, url_prefix="/campaigns")

# Whoever looks at a campaign in one of these may see it change by itself.
MOVING = frozenset({State.SENDING, State.PAUSED, State.APPROVED})


@campaigns.get("/")
def index():
    """Lists campaigns, newest first, all or those in one state."""
    status = request.args.get("status") or None
    if status is not None and status not in set(State):
        raise InvalidInput(f"{status[:40]!r} is no state of a campaign. Choose one from the list.", field="status")
    before = asked_number("before")
    with transaction() as session:
        rows = store.page(session, account_id(), status=status, before_id=before, limit=PAGE_ROWS + 1)
    shown = cut(rows, limit=PAGE_ROWS, cursor=lambda row: row.id)
    return page("campaigns/index", shown=shown, chosen=status, words=WORDS, is_first=before is None)


@campaigns.route("/new", methods=["GET", "POST"])
@role("marketer")
def new():
    """Writes a new campaign."""
    form = CampaignForm()
    return _write("campaigns/new", form, campaign_id=None)


@campaigns.route("/<id:campaign_id>/edit", methods=["GET", "POST"])
@role("marketer")
def edit(campaign_id: int):
    """Changes a campaign that is not being sent yet; voids its approval."""
    with transaction() as session:
        campaign = store.show(session, account_id(), campaign_id)
    if campaign.status not in STEPS[Change.EDIT].sources:
        raise Conflict(
            f"The campaign {campaign.name!r} is {WORDS[campaign.status].label.lower()} and can't be changed any more."
            " Make a new one instead."
        )
    form = CampaignForm(obj=campaign)
    if request.method == "GET" and campaign.text == text_from_html(campaign.html):
        # It was made from the HTML; left in the form it would stay as it is when the HTML changes.
        form.text.data = ""
    return _write("campaigns/edit", form, campaign_id=campaign_id, campaign=campaign)


@campaigns.get("/<id:campaign_id>")
def show(campaign_id: int):
    """Shows one campaign: how far it is, what it says, who wrote and who approved it."""
    values = live(campaign_id)
    return page("campaigns/show", preview=preview_of(values["campaign"]), **values)


@campaigns.get("/<id:campaign_id>/progress")
def progress(campaign_id: int):
    """Gives the part of the campaign's page that moves."""
    return fragment("campaigns/progress", said=request.args.get("said"), **live(campaign_id))


@campaigns.get("/<id:campaign_id>/message")
@shows_mail
def message(campaign_id: int):
    """Gives the HTML part as an example person gets it, for a frame; its policy lets it run and load nothing."""
    with transaction() as session:
        campaign = store.show(session, account_id(), campaign_id)
    return fragment("campaigns/message", html=Markup(preview_of(campaign).html))


def live(campaign_id: int) -> dict:
    """Gives what the moving part of a campaign's page shows."""
    with transaction() as session:
        campaign = store.show(session, account_id(), campaign_id)
        known = troubles(session, account_id()) if campaign.status in MOVING else []
    return {
        "campaign": campaign,
        "troubles": known,
        "words": WORDS,
        "is_moving": campaign.status in MOVING,
        "actions": actions(campaign),
        "send_words": SEND_WORDS,
    }


def preview_of(campaign: CampaignRow) -> Preview:
    """Gives the campaign's message as the first person of its list would get it."""
    source = Source(subject=campaign.subject, sender=campaign.sender, html=campaign.html, text=campaign.text)
    with transaction() as session:
        who = example(session, account_id(), campaign.list_id)
    return preview(source, recipient=who.email if who else NOBODY, values=who.values if who else {})


def actions(campaign: CampaignRow) -> list[str]:
    """Gives the changes that the person who looks may make to the campaign as it is now, most likely first."""
    who = person()
    is_own = campaign.requires_second_person and campaign.author_id == who.user_id
    allowed = (
        ("approve", Change.APPROVE, who.has_role("approver") and not is_own),
        ("reject", Change.REJECT, who.has_role("approver")),
        ("submit", Change.SUBMIT, who.has_role("marketer")),
        ("edit", Change.EDIT, who.has_role("marketer")),
        ("resume", Change.RESUME, who.has_role("marketer", "approver", "operator")),
        ("pause", Change.PAUSE, who.has_role("marketer", "approver", "operator")),
        ("cancel", Change.CANCEL, who.has_role("marketer", "approver", "operator")),
    )
    return [word for word, change, may in allowed if may and campaign.status in STEPS[change].sources]


def _write(template: str, form: CampaignForm, *, campaign_id: int | None, **values):
    with transaction() as session:
        known = lists(session, account_id())
    form.list_id.choices = [SelectChoice(str(row.id), row.name) for row in known]
    if not form.is_submitted():
        return page(template, form=form, has_lists=bool(known), **values)
    if form.validate():
        try:
            saved_id = _save(form, campaign_id=campaign_id)
            return after_post(None, go_to=url_for(".show", campaign_id=saved_id))
        except InvalidInput as error:
            put_error(form, error)
    return page(template, form=form, has_lists=bool(known), status=422, **values)


def _save(form: CampaignForm, *, campaign_id: int | None) -> int:
    draft = Draft(
        name=form.name.data or "",
        list_id=form.list_id.data,
        subject=form.subject.data or "",
        sender=form.sender.data or "",
        html=form.html.data or "",
        text=form.text.data or "",
    )
    with transaction() as session:
        if campaign_id is None:
            return service.create(session, account_id(), author_id=person().user_id, draft=draft)
        service.edit(session, account_id(), campaign_id, author_id=person().user_id, draft=draft)
        return campaign_id
