"""JSON bodies and the paths into them: one path leads to one value. Pure.

Of JSONPath (RFC 9535) the singular queries alone, names and indexes: a rule needs no others, and a wildcard, a
descent or a pattern in a filter could take for ever on a body that a stranger wrote.
"""

import json
import math
from functools import lru_cache
from typing import Any

from jsonpath import JSONPath, JSONPathEnvironment
from jsonpath.exceptions import JSONPathError

from console.errors import InvalidInput

LONGEST_PATH = 300
# A value deeper than this is nobody's parameter.
DEEPEST_VALUE = 50

_ENVIRONMENT = JSONPathEnvironment(strict=True)


class _Nothing:
    """The mark of a path that leads nowhere; None is a value that JSON has."""


NOTHING = _Nothing()


def parse_body(body: bytes) -> Any:
    """Gives the JSON value of a body.

    Raises: InvalidInput saying why it is none.
    """
    if not body.strip():
        raise InvalidInput("The body is empty, where JSON should be.")
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidInput("The body is JSON that is nested too deeply to be read.") from None
    except UnicodeDecodeError:
        raise InvalidInput("The body is not JSON: it is not text in UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"The body is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from None
    except ValueError as error:  # a number of thousands of digits, NaN
        raise InvalidInput(f"The body is not JSON that can be read: {error}.") from None


def check_path(text: str, *, field: str) -> str:
    """Gives a path as it is kept: with its `$` in front; empty when nothing was given.

    Raises: InvalidInput naming the field.
    """
    path = text.strip()
    if not path:
        return ""
    if not path.startswith("$"):
        path = f"$.{path}"
    if len(path) > LONGEST_PATH:
        raise InvalidInput(f"The JSON path is longer than {LONGEST_PATH} characters.", field=field)
    try:
        compiled = _compiled(path)
    except (JSONPathError, ValueError) as error:
        words = str(error).partition("\n")[0].strip().rstrip(".") or "it can't be read"
        raise InvalidInput(f"{path} is no JSON path: {words}.", field=field) from None
    if compiled is None:
        raise InvalidInput(
            f"{path} may lead to several values. Use names and numbers only, such as $.data.customer.email"
            " or $.items[0].name.",
            field=field,
        )
    return path


def read(document: Any, path: str) -> Any:
    """Gives the value that a checked path leads to; NOTHING when there is none."""
    compiled = _compiled(path)
    found = compiled.match(document) if compiled is not None else None
    return NOTHING if found is None else found.obj


def check_value(value: Any, *, what: str) -> Any:
    """Gives the value, which the ledger can keep.

    Raises: InvalidInput when it holds a zero character, half of one or an endless number, or is nested too deeply.
    """
    waiting = [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        if depth > DEEPEST_VALUE:
            raise InvalidInput(f"{what} is nested more than {DEEPEST_VALUE} deep.")
        if isinstance(each, str):
            if not is_plain(each):
                raise InvalidInput(f"{what} holds a zero character (NUL) or half of a character, which can't be kept.")
        elif isinstance(each, float) and not math.isfinite(each):
            raise InvalidInput(f"{what} is a number that is too large to be kept.")
        elif isinstance(each, dict):
            waiting.extend((part, depth + 1) for pair in each.items() for part in pair)
        elif isinstance(each, list):
            waiting.extend((part, depth + 1) for part in each)
    return value


def is_plain(text: str) -> bool:
    """Tells whether the database can keep the text: no zero character, no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


@lru_cache(maxsize=1000)
def _compiled(path: str) -> JSONPath | None:
    """Gives the compiled path; None when it may lead to several values."""
    compiled = _ENVIRONMENT.compile(path)
    return compiled if isinstance(compiled, JSONPath) and compiled.singular_query() else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
