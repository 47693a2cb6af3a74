"""The OpenAPI document: it names all that is served and nothing else, and it is a document of its version."""

import re

import jsonschema_rs
import pytest
import visit
from sqlalchemy import Engine

from console.api import answer_schemas, schemas
from console.api.document import PREFIX, document
from console.api.operations import OPERATIONS
from console.api.schemas import COMPONENTS
from console.db import make_engine


def test_it_is_served_to_everybody_and_says_where_the_api_is(engine: Engine) -> None:
    answer = visit.site(engine).test_client().get("/api/v1/openapi.json")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    served = answer.get_json()
    assert served["openapi"].startswith("3.1.")
    assert served["servers"] == [{"url": "/api/v1"}]
    assert served == document()


def test_each_address_of_the_api_is_in_it_and_each_that_is_in_it_is_served() -> None:
    app = visit.site(make_engine("postgresql://nobody@127.0.0.1:1/none"))
    served = {
        (method, re.sub(r"<\w+:(\w+)>", r"{\1}", rule.rule).removeprefix(PREFIX))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    said = {(method.upper(), path) for path, methods in document()["paths"].items() for method in methods}
    assert served - {("GET", "/openapi.json")} == said
    assert said == {(operation.method, operation.path) for operation in OPERATIONS.values()}


def test_every_reference_leads_to_a_component_and_every_component_is_led_to() -> None:
    led_to = set(re.findall(r"#/components/schemas/(\w+)", repr(document())))
    assert led_to == COMPONENTS.keys() | answer_schemas.COMPONENTS.keys()


@pytest.mark.parametrize("name", [*COMPONENTS, *answer_schemas.COMPONENTS])
def test_each_schema_is_one_and_its_examples_follow_it(name: str) -> None:
    schema = document()["components"]["schemas"][name]
    jsonschema_rs.meta.validate(schema)
    for member, inner in schema.get("properties", {}).items():
        for example in inner.get("examples", []):
            whole = {**inner, "components": document()["components"]}
            assert jsonschema_rs.validator_for(whole, validate_formats=True).is_valid(example), member


def test_every_pattern_and_format_that_can_be_missed_has_its_words() -> None:
    taken = [COMPONENTS, *((one.query, one.headers) for one in OPERATIONS.values())]
    assert set(_values_of("pattern", taken)) == schemas.PATTERN_WORDS.keys()
    assert set(_values_of("format", taken)) == schemas.FORMAT_WORDS.keys()


def _values_of(name: str, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == name and isinstance(inner, str):
                yield inner
            yield from _values_of(name, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _values_of(name, inner)
