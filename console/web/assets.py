"""Files that browsers load: our own from static/, Bootstrap and htmx from their packages. Nothing from a CDN."""

from importlib.util import find_spec
from pathlib import Path

from flask import Flask, Response, send_from_directory, url_for
from flask_bootstrap import Bootstrap5

DAY_S = 86400


def init_app(app: Flask) -> None:
    """Serves the files and gives templates `asset(name)`, an address that changes with the file."""
    app.config.update(BOOTSTRAP_SERVE_LOCAL=True, SEND_FILE_MAX_AGE_DEFAULT=DAY_S)
    Bootstrap5(app)
    htmx_folder = _htmx_folder()

    def htmx() -> Response:
        return send_from_directory(htmx_folder, "htmx.min.js")

    def asset(name: str) -> str:
        path = Path(app.static_folder or "") / name
        return url_for("static", filename=name, v=int(path.stat().st_mtime))

    app.add_url_rule("/static/htmx/htmx.min.js", "htmx", htmx)
    app.jinja_env.globals["asset"] = asset


def _htmx_folder() -> Path:
    # Found without being imported: the package is made for Django, but the file in it needs none.
    spec = find_spec("js_lib_htmx")
    if spec is None or spec.origin is None:
        raise RuntimeError("The package django-js-lib-htmx is not installed.")
    return Path(spec.origin).parent / "static" / "htmx"
