"""Reads what a caller sent: JSON out of bytes, held against its schema; what is wrong is told by field. Pure."""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import jsonschema_rs
from jsonschema_rs import ValidationError, ValidationErrorKind

from console.api.schemas import COMPONENTS, FORMAT_WORDS, PATTERN_WORDS, Schema
from console.errors import FieldError, SendonceError

DEEPEST = 32
SHOWN_ERRORS = 20
LONGEST_NAME = 200
BODY = "body"
# Long past, and far away: PostgreSQL and Python both reach from here to there.
_EARLIEST, _LATEST = "1969", "9999"

_KIND = ValidationErrorKind
_TYPE_WORDS = {
    "object": "an object", "array": "a list", "string": "a string", "integer": "a whole number", "number": "a number",
    "boolean": "true or false", "null": "null",
}  # fmt: skip


class Malformed(SendonceError):
    """What was sent does not follow its schema; `errors` tells each field that does not."""

    def __init__(self, errors: Iterable[FieldError]):
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{error.field} {error.detail}" for error in self.errors) + ".")


class Checker:
    """Holds values against one schema."""

    def __init__(self, schema: Schema):
        self._properties = list(schema.get("properties", ()))
        self._validator = jsonschema_rs.validator_for(
            {**schema, "components": {"schemas": COMPONENTS}}, validate_formats=True, offline=True
        )

    def check(self, value: Any) -> None:
        """Raises: Malformed."""
        try:
            if self._validator.is_valid(value):
                return
        except UnicodeEncodeError:
            raise Malformed(
                [FieldError(_half_character_in(value), "holds half of a character (a lone \\ud8..)")]
            ) from None
        errors = islice(self._validator.iter_errors(value), SHOWN_ERRORS)
        raise Malformed(inner for error in errors for inner in self._told(error))

    def _told(self, error: ValidationError) -> Iterator[FieldError]:
        match error.kind:
            case _KIND.Required(name):
                yield FieldError(field_of([*error.instance_path, name]), "is missing")
            case _KIND.AdditionalProperties(names):
                for name in names:
                    yield FieldError(field_of([*error.instance_path, name]), self._unknown(name))
            case _KIND.PropertyNames(inner):
                yield FieldError(field_of(error.instance_path), f"has a name that {_words(inner.kind)}")
            case kind:
                yield FieldError(field_of(error.instance_path), _words(kind))

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._properties, n=1)
        return "is unknown" + (f"; {near[0]} is meant?" if near else "")


def parse(raw: bytes) -> Any:
    """Gives the JSON document in a body.

    Raises: Malformed when it is none in UTF-8, nests deeper than DEEPEST, or names a field twice (RFC 7493, 2.3).
    """
    try:
        document = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise _of_body("is not encoded in UTF-8") from None
    except json.JSONDecodeError as error:
        raise _of_body(f"is not JSON: {error.msg}, at character {error.pos + 1}") from None
    except RecursionError:
        raise _of_body(f"is nested deeper than {DEEPEST} levels") from None
    except ValueError:
        raise _of_body("holds a number with too many digits") from None
    # Few bodies have so many brackets at all.
    if raw.count(b"{") + raw.count(b"[") > DEEPEST:
        too_deep = next((path for path, _ in _walk(document) if len(path) > DEEPEST), None)
        if too_deep is not None:
            raise Malformed([FieldError(field_of(too_deep[:1]), f"is nested deeper than {DEEPEST} levels")])
    return document


def parse_words(given: Mapping[str, list[str]], schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Gives the parameters of an address line or of headers, whole numbers as such; not held against a schema yet.

    Raises: Malformed when one is given twice.
    """
    twice = [name for name, values in given.items() if len(values) > 1]
    if twice:
        raise Malformed(FieldError(name, "is given twice") for name in twice)
    return {name: _number(values[0], schemas.get(name, {})) for name, values in given.items()}


def moment(text: str) -> datetime:
    """Gives a moment that follows the format date-time. What no calendar of ours reaches is taken for its nearest.

    Source: RFC 3339, 5.6; a leap second counts as the one before it.
    """
    year, rest = text[:4], re.sub(r"(?<=T\d\d:\d\d):60", ":59", text[4:].upper())
    if year <= _EARLIEST:
        return datetime(int(_EARLIEST), 12, 31, tzinfo=UTC)
    if year >= _LATEST:
        return datetime(int(_LATEST), 1, 1, tzinfo=UTC)
    return datetime.fromisoformat(year + rest).astimezone(UTC)


def field_of(path: Iterable[str | int]) -> str:
    """Gives the name of a field by its path: params.order.lines[0]."""
    name = ""
    for step in path:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name[:LONGEST_NAME] or BODY


def _number(word: str, schema: Schema) -> int | str:
    is_number = schema.get("type") == "integer" and word.isascii() and word.isdigit() and len(word) < 20
    return int(word) if is_number else word


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        raise Malformed([FieldError(next(name for name in names if names.count(name) > 1), "is given twice")])
    return made


def _walk(document: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Gives every value in a document with its path, without recursion."""
    waiting: list[tuple[list[str | int], Any]] = [([], document)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        if isinstance(value, dict):
            waiting.extend(([*path, name], inner) for name, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(([*path, place], inner) for place, inner in enumerate(value))


def _half_character_in(document: Any) -> str:
    for path, value in _walk(document):
        texts = [value, *value] if isinstance(value, dict) else [value]
        for text in texts:
            if isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text):
                return field_of(path).encode("utf-8", "replace").decode()
    return BODY


def _of_body(detail: str) -> Malformed:
    return Malformed([FieldError(BODY, detail)])


# What is wrong, by the schema's keyword, in words that don't repeat what was sent.
_WORDS: dict[type[ValidationErrorKind], Callable[[Any], str]] = {
    _KIND.Type: lambda kind: _type_words(kind.types),
    _KIND.Enum: lambda kind: "takes one of " + ", ".join(map(str, kind.options)),
    _KIND.MinLength: lambda kind: "is empty",
    _KIND.MaxLength: lambda kind: f"has more than {kind.limit} characters",
    _KIND.Pattern: lambda kind: PATTERN_WORDS[kind.pattern],
    _KIND.Format: lambda kind: FORMAT_WORDS[kind.format],
    _KIND.Minimum: lambda kind: f"is less than {kind.limit}",
    _KIND.Maximum: lambda kind: f"is more than {kind.limit}",
    _KIND.MinItems: lambda kind: f"has fewer than {kind.limit} entries",
    _KIND.MaxItems: lambda kind: f"has more than {kind.limit} entries",
    _KIND.MaxProperties: lambda kind: f"has more than {kind.limit} entries",
}


def _words(kind: ValidationErrorKind) -> str:
    return _WORDS[type(kind)](kind)


def _type_words(types: list[str]) -> str:
    # Where everything is taken, only what JSON has no number for is refused: 1e999, NaN.
    if _TYPE_WORDS.keys() - {"integer"} <= set(types):
        return "is no finite number"
    return "takes " + " or ".join(_TYPE_WORDS[name] for name in types)
