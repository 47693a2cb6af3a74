"""How often a view may be tried: counted in the memory of this process, by person and by machine."""

from collections.abc import Callable
from typing import cast

from flask import Flask
from flask.typing import RouteCallable
from flask_limiter import Limiter
from werkzeug.wrappers import Response

from console.web.proxies import machine

# Failed sign-ins only, and asked before the password is looked at. The first stops guessing one password, the second
# trying one password on many people.
PER_PERSON = "5 per 5 minutes"
PER_MACHINE = "60 per 5 minutes"
WORDS = (
    "There were too many failed sign-ins in the last 5 minutes. Wait 5 minutes and try again;"
    " if you forgot your password, ask an admin of your account for a new one."
)


def init_app(app: Flask, *, endpoint: str, person_key: Callable[[], str]) -> None:
    """Limits failed POSTs to the view `endpoint`.

    Takes: person_key, giving whom the request is about, the same however it is spelt.
    """
    limiter = Limiter(machine, app=app, storage_uri="memory://", headers_enabled=True)
    view = app.view_functions[endpoint]
    for limit, key in ((PER_PERSON, lambda: f"{machine()} {person_key()}"), (PER_MACHINE, machine)):
        view = limiter.limit(limit, key_func=key, methods=["POST"], deduct_when=_has_failed, error_message=WORDS)(view)
    app.view_functions[endpoint] = cast(RouteCallable, view)


def _has_failed(response: Response) -> bool:
    return response.status_code >= 400
