"""How often a view may be tried: counted in the memory of this process, by person and by machine."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from flask import Flask, make_response, request
from flask.typing import RouteCallable
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from limits import parse
from werkzeug.exceptions import TooManyRequests
from werkzeug.wrappers import Response

# Failed sign-ins only. The first stops guessing one password, and is asked before the password is looked at. The
# second tells whoever tries many people to wait, but only after a failure: people behind one proxy share an address,
# and the failures of a stranger there must not keep out those who know their password.
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
    limiter = Limiter(get_remote_address, app=app, storage_uri="memory://", headers_enabled=True)
    view = _with_machine_limit(app.view_functions[endpoint], limiter)
    app.view_functions[endpoint] = cast(
        RouteCallable,
        limiter.limit(
            PER_PERSON,
            key_func=lambda: f"{get_remote_address()} {person_key()}",
            methods=["POST"],
            deduct_when=_has_failed,
            error_message=WORDS,
        )(view),
    )


def _with_machine_limit(view: Callable[..., Any], limiter: Limiter) -> Callable[..., Any]:
    limit = parse(PER_MACHINE)

    @wraps(view)
    def limited(*args: Any, **kwargs: Any) -> Response:
        answer = make_response(view(*args, **kwargs))
        key = get_remote_address()
        if request.method == "POST" and _has_failed(answer) and not limiter.limiter.hit(limit, "sign-in", key):
            reset_at = limiter.limiter.get_window_stats(limit, "sign-in", key).reset_time
            raise TooManyRequests(WORDS, retry_after=max(1, int(reset_at - time.time())))
        return answer

    return limited


def _has_failed(response: Response) -> bool:
    return response.status_code >= 400
