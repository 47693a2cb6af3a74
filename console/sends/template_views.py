"""Screens of single messages' templates: the list, one with its versions, writing a new one or the next version."""

from flask import flash, request, url_for
from werkzeug.wrappers import Response

from console.content import template_store
from console.content.compile import compile_content
from console.content.source import Source
from console.content.template_store import TemplateRow
from console.errors import InvalidInput, NotFound
from console.sends import type_store
from console.sends.forms import TemplateForm
from console.sends.message_types import ANY_SENDER, save_template
from console.sends.settle_views import sends
from console.web.database import transaction
from console.web.guards import account_id, person, role
from console.web.pages import after_post, page, put_error

__all__ = ["sends"]


@sends.get("/templates")
def templates():
    """Lists the account's templates with their newest versions."""
    with transaction() as session:
        rows = template_store.all_newest(session, account_id())
    return page("sends/templates", rows=rows)


@sends.get("/template/<template_name>")
def template(template_name: str):
    """Shows a template: the newest version, or the one that the address line names, and who uses it."""
    with transaction() as session:
        versions = template_store.versions(session, account_id(), template_name)
        users = type_store.with_template(session, account_id(), template_name)
    shown = _version(versions, request.args.get("version"))
    compiled = compile_content(Source(subject=shown.subject, sender=ANY_SENDER, html=shown.html, text=shown.text))
    return page("sends/template", shown=shown, versions=versions, users=users, fields=compiled.fields)


@sends.route("/new-template", methods=["GET", "POST"])
@role("marketer")
def new_template():
    """Writes the first version of a template."""
    form = TemplateForm()
    if form.validate_on_submit():
        answer = _saved(form, name=form.name.data or "", after_version=0)
        if answer is not None:
            return answer
    return page("sends/new_template", form=form, status=422 if form.errors else 200)


@sends.route("/edit-template/<template_name>", methods=["GET", "POST"])
@role("marketer")
def edit_template(template_name: str):
    """Writes the next version of a template."""
    with transaction() as session:
        newest = template_store.newest(session, account_id(), template_name)
    form = TemplateForm(obj=newest, data={"version": newest.version})
    del form.name
    if form.validate_on_submit():
        answer = _saved(form, name=newest.name, after_version=int(form.version.data or 0))
        if answer is not None:
            return answer
    return page("sends/edit_template", form=form, row=newest, status=422 if form.errors else 200)


def _saved(form: TemplateForm, *, name: str, after_version: int) -> Response | None:
    """Saves what was written; gives the way on, None when the form now says what is wrong with it."""
    try:
        with transaction() as session:
            version = save_template(
                session,
                account_id(),
                name=name,
                subject=form.subject.data or "",
                html=form.html.data or "",
                body=form.text.data or "",
                author_id=person().user_id,
                after_version=after_version,
            )
    except InvalidInput as error:
        put_error(form, error)
        return None
    flash(f"Version {version} of {name} is in force: the next message of each type that uses it is made from it.")
    return after_post(None, go_to=url_for(".template", template_name=name))


def _version(versions: list[TemplateRow], asked: str | None) -> TemplateRow:
    if asked is None:
        return versions[0]
    for each in versions:
        if str(each.version) == asked:
            return each
    raise NotFound(f"The template {versions[0].name!r} has no version {asked!r} that is kept for looking at.")
