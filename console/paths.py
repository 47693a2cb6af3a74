"""Where the files lie that are not Python: templates, static files, migrations."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent

# In a checkout (or installed with -e) they stand beside the package, in a wheel inside it.
SHARE = _CHECKOUT if (_CHECKOUT / "migrations" / "env.py").exists() else _PACKAGE / "_share"

TEMPLATES = SHARE / "templates"
STATIC = SHARE / "static"
MIGRATIONS = SHARE / "migrations"
