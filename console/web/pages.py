"""Ways to answer: a whole page, a fragment, or what follows a POST; and how templates write moments and numbers."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from flask import Flask, Response, make_response, redirect, render_template, request
from markupsafe import Markup, escape
from werkzeug.wrappers import Response as AnyResponse

from console.errors import InvalidInput
from console.web.forms import Form


def init_app(app: Flask) -> None:
    """Teaches the templates the filters `moment`, `in_zone`, `figure` and `counted`."""
    app.jinja_env.filters["moment"] = moment
    app.jinja_env.filters["in_zone"] = in_zone
    app.jinja_env.filters["figure"] = figure
    app.jinja_env.filters["counted"] = counted
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True


def page(name: str, *, status: int = 200, **values: Any) -> Response:
    """Gives the whole page templates/<name>.html."""
    return make_response(render_template(f"{name}.html", **values), status)


def fragment(name: str, *, status: int = 200, **values: Any) -> Response:
    """Gives templates/<area>/_<word>.html, a part of a page, for `name` = <area>/<word>."""
    area, _, word = name.rpartition("/")
    return make_response(render_template(f"{area}/_{word}.html", **values), status)


def after_post(name: str | None, *, go_to: str, **values: Any) -> AnyResponse:
    """Gives what follows a POST that worked: the fragment with htmx, a 303 to `go_to` without.

    Takes: name, <area>/<word> of the fragment; None when the person moves on to another page in either case.
    """
    if not is_htmx():
        return redirect(go_to, code=303)
    if name is None:
        return Response(status=204, headers={"HX-Redirect": go_to})
    return fragment(name, **values)


def is_htmx() -> bool:
    """Tells whether htmx asks, and not the browser itself."""
    return bool(request.htmx)  # type: ignore[attr-defined]


def put_error(form: Form, error: InvalidInput) -> None:
    """Shows a refusal by a service beside the form's field that it names, or above the form when it names none."""
    if error.field is None or error.field not in form:
        form.form_errors.append(str(error))
    else:
        form[error.field].errors = [*form[error.field].errors, str(error)]


def moment(value: datetime | None) -> Markup:
    """Gives a moment as <time>, in UTC to the second; a dash when there is none."""
    if value is None:
        return Markup('<span aria-label="not yet">–</span>')
    utc = value.astimezone(UTC)
    words = f"{utc.day} {utc:%b %Y}, {utc:%H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(utc.isoformat(timespec="seconds"), words)


def in_zone(value: datetime, zone: str) -> Markup:
    """Gives a moment as <time>, as a clock in the zone shows it, with the zone's name."""
    local = value.astimezone(ZoneInfo(zone))
    words = f"{local:%A}, {local.day} {local:%b %Y}, {local:%H:%M} {zone}"
    return Markup('<time datetime="{}">{}</time>').format(local.isoformat(timespec="seconds"), words)


def figure(value: int) -> str:
    """Gives a whole number with its thousands apart: 1,234,567."""
    return f"{value:,}"


def counted(value: int, noun: str, plural: str | None = None) -> Markup:
    """Gives a number with its unit: 1 recipient, 2,000 recipients."""
    return Markup("{}&nbsp;{}").format(figure(value), escape(noun if value == 1 else plural or f"{noun}s"))
