"""How often a view may be tried: counted in the memory of this process, by address and by machine."""

from typing import cast

from flask import Flask, request
from flask.typing import RouteCallable
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from werkzeug.wrappers import Response

# Failed sign-ins only. The first stops guessing one password, the second trying one password on many people.
PER_PERSON = "5 per 5 minutes"
PER_MACHINE = "60 per 5 minutes"
WORDS = (
    "There were too many failed sign-ins in the last 5 minutes. Wait 5 minutes and try again;"
    " if you forgot your password, ask an admin of your account for a new one."
)


def init_app(app: Flask, *, endpoint: str) -> None:
    """Limits failed POSTs to the view `endpoint`, which reads the fields `account` and `email`."""
    limiter = Limiter(get_remote_address, app=app, storage_uri="memory://", headers_enabled=True)
    view = app.view_functions[endpoint]
    for limit, key in ((PER_PERSON, _person_and_machine), (PER_MACHINE, get_remote_address)):
        view = limiter.limit(limit, key_func=key, methods=["POST"], deduct_when=_has_failed, error_message=WORDS)(view)
    app.view_functions[endpoint] = cast(RouteCallable, view)


def _person_and_machine() -> str:
    person = f"{request.form.get('account', '')[:100]}/{request.form.get('email', '')[:300]}".strip().lower()
    return f"{get_remote_address()} {person}"


def _has_failed(response: Response) -> bool:
    return response.status_code >= 400
