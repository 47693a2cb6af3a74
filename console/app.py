"""create_app: puts all areas together. The only module that knows every area; importing it starts nothing."""

from flask import Flask
from flask_wtf import CSRFProtect
from htmx_flask import Htmx
from sqlalchemy import Engine

from console.accounts.audit_views import accounts
from console.accounts.views import load_person, sign_in_person
from console.api import views as api_views
from console.audience.views import audience
from console.campaigns import step_views
from console.config import Settings
from console.db import make_engine
from console.errors import ConfigError
from console.inbox.receive_views import receive
from console.inbox.report_views import inbox, reports
from console.incidents.views import incidents
from console.paths import STATIC, TEMPLATES
from console.providers.views import providers
from console.sends import type_views
from console.today.views import today
from console.web import assets, cookies, correlation, database, guards, headers, pages, problems, proxies, throttle
from console.web.health import health
from console.web.ids import IdConverter, TokenConverter

# HTML of up to a million characters, encoded for a form.
LARGEST_FORM_BYTES = 4 * 1024 * 1024


def create_app(settings: Settings, engine: Engine | str | None = None) -> Flask:
    """Makes the web application.

    Takes:  engine, or the URL of one to be made; None for the URL in the settings.
    Raises: ConfigError when there is no URL.
    """
    app = Flask("console", template_folder=str(TEMPLATES), static_folder=str(STATIC))
    app.config.update(
        SECRET_KEY=settings.secret_key,
        MAX_CONTENT_LENGTH=LARGEST_FORM_BYTES,
        MAX_FORM_MEMORY_SIZE=LARGEST_FORM_BYTES,
        # The token lives as long as the session; a form left open over lunch still works.
        WTF_CSRF_TIME_LIMIT=None,
        SENDONCE_SETTINGS=settings,
    )
    app.url_map.converters["id"] = IdConverter
    app.url_map.converters["token"] = TokenConverter
    correlation.init_app(app)
    cookies.init_app(app)
    bound = _engine(settings, engine)
    database.bind(app, bound)
    Htmx(app)
    pages.init_app(app)
    assets.init_app(app)
    proxies.init_app(app, trusted_count=settings.trusted_proxies)
    headers.init_app(app, is_https=settings.is_https)
    csrf = CSRFProtect(app)
    areas = (today, accounts, step_views.campaigns, type_views.sends, audience, inbox, incidents, providers)
    for blueprint in (*areas, api_views.api, health):
        app.register_blueprint(blueprint)
    # People leave a list without an account, a session or cookies (RFC 8058, 3.2).
    csrf.exempt(audience)
    # Applications have neither; an event's signature is what tells whose it is.
    csrf.exempt(receive)
    csrf.exempt(reports)
    # Programs send a key with every call, and no cookie is read.
    csrf.exempt(api_views.api)
    api_views.init_app(app, bound)
    throttle.init_app(app, endpoint="accounts.sign_in", person_key=sign_in_person)
    guards.init_app(app, load_person=load_person)
    problems.init_app(app)
    return app


def _engine(settings: Settings, given: Engine | str | None) -> Engine:
    if isinstance(given, Engine):
        return given
    url = given or settings.database_url
    if url is None:
        raise ConfigError("create_app needs a database URL; console.embedded.database_url(settings) gives one.")
    return make_engine(url)
