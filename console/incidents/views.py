"""The screen "they got it twice": one recipient, one window, what happened, and why."""

from flask import Blueprint, Response, jsonify, make_response, request

from console.errors import InvalidInput, NotFound
from console.incidents import service
from console.incidents.comparing import columns
from console.incidents.forms import TimelineForm
from console.incidents.service import Timeline
from console.incidents.words import CAUSES, times
from console.sends import type_store
from console.sends.words import WORDS
from console.web.database import transaction
from console.web.guards import account_id, role
from console.web.pages import page, put_error

incidents = Blueprint("incidents", __name__, url_prefix="/incidents")


@incidents.get("/timeline")
@role("support", "operator")
def timeline():
    """Shows the timeline of an address or id; as text or as JSON when asked."""
    form = TimelineForm(request.args, meta={"csrf": False})
    with transaction() as session:
        form.offer([each.name for each in type_store.all_types(session, account_id())])
    if not request.args.get("recipient"):
        return page("incidents/timeline", form=form, found=None)
    found, status = _found(form), 200
    if found is None:
        status = 422
    elif (wanted := request.args.get("as")) in ("text", "json"):
        return _as_file(found, wanted)
    else:
        form.show(found)
    compared = columns(found.copies) if found else None
    return page(
        "incidents/timeline", status=status, form=form, found=found, compared=compared, causes=CAUSES, times=times,
        words=WORDS,
    )  # fmt: skip


def _found(form: TimelineForm) -> Timeline | None:
    """Gives the timeline that the form asks for; None when it can't be given, and the form says why."""
    if not form.validate():
        return None
    since, until = form.window()
    try:
        with transaction() as session:
            return service.show(
                session,
                account_id(),
                form.recipient.data or "",
                since=since,
                until=until,
                message_type=form.message_type.data or None,
            )
    except InvalidInput as error:
        names = {"from": "since", "to": "until"}
        put_error(form, InvalidInput(str(error), field=names.get(error.field or "", error.field)))
    except NotFound as error:
        put_error(form, InvalidInput(str(error), field="recipient"))
    return None


def _as_file(found: Timeline, wanted: str) -> Response:
    answer = make_response(found.text()) if wanted == "text" else jsonify(found.document())
    answer.mimetype = "text/plain" if wanted == "text" else "application/json"
    answer.headers["Content-Disposition"] = f"inline; filename=timeline.{'txt' if wanted == 'text' else 'json'}"
    return answer
