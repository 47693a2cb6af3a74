"""From a URL to its files: one word for view, template and test file (layout.md)."""

import re
from pathlib import Path

import pytest
import visit
from werkzeug.routing import Rule

from console.db import make_engine
from console.paths import TEMPLATES

TESTS = Path(__file__).parents[1]
# Asked by machines, answered in JSON; their names are fixed by custom.
FIXED = {"/healthz", "/readyz", "/inbox/<endpoint>/<token:token>"}
# Named by the API's document, which tests/api/test_document.py holds against the URL map.
API = "/api/"
FILES = {"static", "bootstrap.static", "htmx"}


def _rules() -> list[Rule]:
    app = visit.site(make_engine("postgresql://nobody@127.0.0.1:1/none"))
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint not in FILES and rule.rule not in FIXED]
    return [rule for rule in rules if not rule.rule.startswith(API)]


def expected(rule: str) -> tuple[str, str]:
    """The area and the word of a URL: the last literal word; `index` without one, `show` with only an id."""
    parts = [part for part in rule.split("/") if part]
    area = parts[0] if parts else "today"
    literals = [part for part in parts[1:] if not part.startswith("<")]
    if literals:
        return area, literals[-1].replace("-", "_")
    return area, "show" if len(parts) > 1 else "index"


def test_the_rule_reads_urls_as_the_layout_says() -> None:
    assert expected("/") == ("today", "index")
    assert expected("/campaigns/") == ("campaigns", "index")
    assert expected("/campaigns/<id:campaign_id>") == ("campaigns", "show")
    assert expected("/campaigns/<id:campaign_id>/pause") == ("campaigns", "pause")
    assert expected("/accounts/sign-in") == ("accounts", "sign_in")


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: rule.rule)
def test_a_url_names_its_area_view_template_and_test(rule: Rule) -> None:
    area, word = expected(rule.rule)
    assert rule.endpoint == f"{area}.{word}"
    assert (TESTS / area / f"test_{word}.py").exists()
    if rule.methods and "GET" in rule.methods:
        assert {f"{word}.html", f"_{word}.html"} & {path.name for path in (TEMPLATES / area).iterdir()}


def test_ids_in_urls_say_what_they_are_of() -> None:
    names = {name for rule in _rules() for name in re.findall(r"<(?:\w+:)?(\w+)>", rule.rule)}
    assert names <= {
        "campaign_id",
        "endpoint",
        "endpoint_id",
        "event_id",
        "key_id",
        "kind",
        "notice_id",
        "provider_id",
        "rule_id",
        "template_name",
        "type_name",
        "send_id",
        "set_id",
        "token",
    }
