"""Each thing in its room: imports point one way, SQL stays in stores, Flask above the services, one place commits."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "console"

# Where SQL may stand beside stores and models, and why.
SQL_ROOMS = {
    "db.py": "the engine",
    "schema.py": "asks for the version, takes the migration lock",
    "postgres.py": "makes the database that the rest connects to",
    "dispatch/recorder.py": "the three commits",
    "dispatch/asker.py": "sets the connection that the three commits use",
}
# The recorder's connections are in autocommit mode: each of its statements is one of the three commits.
COMMIT_ROOMS = {
    "db.py": "transaction()",
    "schema.py": "the migration lock is held over several transactions",
}
STATEMENT = re.compile(
    r"\s*(SELECT\s|INSERT INTO\s|UPDATE \w+\s+SET\s|DELETE FROM\s|WITH \w+ AS\s|NOTIFY \w|LISTEN \w)"
)
FLASK = {"flask", "flask_login", "flask_wtf", "flask_limiter", "flask_talisman", "htmx_flask", "wtforms", "werkzeug"}


def _modules(package: Path = PACKAGE) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def _called(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Gives the name of each thing that is called, and whether it is called as a method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name):
                    yield name, False
                case ast.Attribute(attr=name):
                    yield name, True


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _uses(tree: ast.AST, *libraries: str) -> bool:
    return any(name.split(".")[0] in libraries for name in _imported(tree))


def _has_sql(tree: ast.AST) -> bool:
    makes = {("text", False), ("select", False), ("execute", True), ("executemany", True), ("copy", True)}
    if _uses(tree, "sqlalchemy", "psycopg") and makes & set(_called(tree)):
        return True
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return any(STATEMENT.match(text) for text in texts)


def _may_hold_sql(module: str) -> bool:
    name = module.rpartition("/")[2]
    return name.endswith(("store.py", "models.py")) or module in SQL_ROOMS


def _may_know_flask(module: str) -> bool:
    name = module.rpartition("/")[2]
    return name.endswith(("views.py", "forms.py")) or module.startswith(("web/", "cli/")) or module == "app.py"


def _commits(tree: ast.AST) -> bool:
    called = set(_called(tree))
    return ("commit", True) in called or (("begin", True) in called and _uses(tree, "sqlalchemy"))


def test_sql_stands_in_stores_and_models_only() -> None:
    assert [module for module, tree in _modules() if _has_sql(tree) and not _may_hold_sql(module)] == []


def test_one_place_commits_for_requests_ticks_and_commands() -> None:
    assert [module for module, tree in _modules() if _commits(tree) and module not in COMMIT_ROOMS] == []


def test_flask_is_known_above_the_services_only() -> None:
    knows = [module for module, tree in _modules() if FLASK & {name.split(".")[0] for name in _imported(tree)}]
    assert [module for module in knows if not _may_know_flask(module)] == []


def test_the_rooms_that_are_excused_are_there_and_need_it() -> None:
    trees = dict(_modules())
    assert [module for module in COMMIT_ROOMS if not _commits(trees[module])] == []
    assert [module for module in SQL_ROOMS if module != "db.py" and not _has_sql(trees[module])] == []


@pytest.mark.parametrize(
    ("source", "finds"),
    [
        ("from sqlalchemy import text\ndef f(s):\n    s.scalars(text('SELECT 1'))", _has_sql),
        ("import psycopg\ndef f(c):\n    c.execute('SELECT 1')", _has_sql),
        ("STATEMENT = 'UPDATE sends SET status = 1'", _has_sql),
        ("def f(session):\n    session.commit()", _commits),
        ("import sqlalchemy\ndef f(engine):\n    engine.begin()", _commits),
    ],
)
def test_these_checks_can_turn_red(source: str, finds) -> None:
    assert finds(ast.parse(source))


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_every_module_says_what_belongs_in_it() -> None:
    assert [module for module, tree in _modules() if tree.body and not ast.get_docstring(tree)] == []


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package and its contracts."""
    shutil.copytree(PACKAGE, tmp_path / "console", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_import_contracts_hold(copied: Path) -> None:
    done = _lint_imports(copied)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("web/stray.py", "from console.campaigns import service", "Imports point one way"),
        ("sends/stray.py", "from console.dispatch import recorder", "Imports point one way"),
        ("campaigns/store.py", "from console.campaigns import service", "Inside an area"),
        ("sends/states.py", "import flask", "Pure modules"),
    ],
)
def test_an_import_that_points_the_other_way_turns_the_contracts_red(
    copied: Path, module: str, line: str, broken: str
) -> None:
    path = copied / "console" / module
    path.write_text((path.read_text() if path.exists() else '"""Stray."""\n') + f"\n{line}\n")
    done = _lint_imports(copied)
    assert done.returncode == 1
    assert any(broken in found and "BROKEN" in found for found in done.stdout.splitlines()), done.stdout


def test_a_new_package_without_a_place_turns_the_contracts_red(copied: Path) -> None:
    (copied / "console" / "stray.py").write_text('"""Stray."""\n')
    assert _lint_imports(copied).returncode == 1
