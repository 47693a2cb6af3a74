"""Pages for people who get mail: leaving a list, and coming back. Without sign-in, cookies and script.

A GET never changes anything: mail scanners open every link. A POST does, from the page's button or from a mail
program's own (RFC 8058); it is answered at once, without a redirect, which mail programs don't follow (3.2).
"""

from flask import Blueprint, Response, current_app, request

from console.audience import service
from console.audience.unsubscribe import Ticket, read_token
from console.errors import InvalidInput, NotFound
from console.web.database import transaction
from console.web.guards import public
from console.web.pages import page

audience = Blueprint("audience", __name__, url_prefix="/audience")


@audience.route("/unsubscribe/<token>", methods=["GET", "POST"])
@public
def unsubscribe(token: str) -> Response:
    """GET shows which list the link is about, with one button; POST takes the person off it, whatever its body says."""
    if request.method == "POST":
        with transaction() as session:
            service.leave(session, _ticket(token))
    return _show(token)


@audience.post("/unsubscribe/<token>/undo")
@public
def undo(token: str) -> Response:
    """Puts the person back on the list that they left by a link."""
    with transaction() as session:
        is_back = service.come_back(session, _ticket(token))
    return _show(token, is_back=is_back)


@audience.errorhandler(InvalidInput)
@audience.errorhandler(NotFound)
def unknown(error: InvalidInput | NotFound) -> Response:
    """Says in plain words that the link is not good."""
    return _private(page("audience/unknown", words=str(error), status=404))


def _show(token: str, **values: bool) -> Response:
    with transaction() as session:
        reach = service.reach(session, _ticket(token))
    return _private(page("audience/unsubscribe", reach=reach, token=token, **values))


def _ticket(token: str) -> Ticket:
    return read_token(current_app.config["SECRET_KEY"], token)


def _private(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response
