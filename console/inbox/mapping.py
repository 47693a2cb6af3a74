"""What a rule makes of an event: recipient, parameters, dedupe key, entities. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.errors import InvalidInput
from console.inbox import paths

LONGEST_KEY = 500
LONGEST_ENTITY = 500
MOST_NAMES = 100
# The entity that every send of the inbox has: the event that asked for it.
EVENT_ENTITY = "webhook_event"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_BRACES = re.compile(r"\{([^{}]*)\}")
# What a pattern may name beside the rule's own parameters and entities.
_OF_EVENT = ("endpoint", "event_id", "event_type")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMap:
    """The part of a rule that reads events: JSON paths, checked."""

    recipient_path: str
    params: Mapping[str, str]
    dedupe_pattern: str
    entities: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known of an event beside its body."""

    endpoint: str
    event_id: str
    event_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """What an event asks for; `dedupe_key` None: the rule gives none."""

    to: str
    params: Mapping[str, Any]
    dedupe_key: str | None
    entities: Mapping[str, str]


def map_event(document: Any, rule: RuleMap, source: Source) -> Mapped:
    """Gives what the rule makes of an event's JSON value.

    Raises: InvalidInput naming recipient_path, params, dedupe_pattern or entities, and saying what is not there.
    """
    params = {
        name: _value(document, path, what=f"The parameter {name}", field="params") for name, path in rule.params.items()
    }
    entities = {
        name: _text(
            _value(document, path, what=f"The entity {name}", field="entities"), f"The entity {name}", "entities"
        )
        for name, path in rule.entities.items()
    }
    to = _value(document, rule.recipient_path, what="The recipient", field="recipient_path")
    if not isinstance(to, str) or not to.strip():
        raise InvalidInput(
            f"The recipient, at {rule.recipient_path}, is no text with an address.", field="recipient_path"
        )
    return Mapped(
        to=to,
        params=params,
        dedupe_key=_key(document, rule, {**params, **entities}, source),
        entities={**entities, EVENT_ENTITY: source.event_id},
    )


def check_names(pairs: Mapping[str, str], *, field: str) -> dict[str, str]:
    """Gives names and paths as they are kept.

    Raises: InvalidInput naming the field.
    """
    if len(pairs) > MOST_NAMES:
        raise InvalidInput(f"There are more than {MOST_NAMES} names.", field=field)
    kept = {}
    for name, path in pairs.items():
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"{name[:80]!r} is no name: it takes letters, digits and _, and begins with no digit.", field=field
            )
        kept[name] = paths.check_path(path, field=field)
        if not kept[name]:
            raise InvalidInput(f"{name} has no JSON path behind it.", field=field)
    return kept


def check_pattern(pattern: str, *, names: Mapping[str, Any], field: str = "dedupe_pattern") -> str:
    """Gives a dedupe key's pattern, or its JSON path, as it is kept.

    Raises: InvalidInput naming the field, when it names what the rule has not, or would be the same for every event.
    """
    text = pattern.strip()
    if text.startswith("$"):
        return paths.check_path(text, field=field)
    if len(text) > LONGEST_KEY:
        raise InvalidInput(f"The pattern is longer than {LONGEST_KEY} characters.", field=field)
    used = _BRACES.findall(text)
    if text and not used:
        raise InvalidInput(
            "The pattern has no {name} in it, so the second event would be a duplicate of the first.", field=field
        )
    unknown = [name for name in used if name not in names and name not in _OF_EVENT]
    if unknown:
        raise InvalidInput(
            f"{{{unknown[0][:80]}}} is neither a parameter or entity of this rule nor one of {', '.join(_OF_EVENT)}.",
            field=field,
        )
    return text


def default_key(source: Source) -> str:
    """Gives the dedupe key of an event when nobody gives another: one event, one message."""
    return f"webhook:{source.endpoint}:{source.event_id}"


def _key(document: Any, rule: RuleMap, values: Mapping[str, Any], source: Source) -> str | None:
    pattern = rule.dedupe_pattern
    if not pattern:
        return None
    if pattern.startswith("$"):
        what = "The dedupe key"
        return _text(_value(document, pattern, what=what, field="dedupe_pattern"), what, "dedupe_pattern")
    known = {
        **values,
        "endpoint": source.endpoint,
        "event_id": source.event_id,
        "event_type": source.event_type,
    }

    def filled(match: re.Match[str]) -> str:
        return _text(known[match[1]], f"{match[0]} of the dedupe key", "dedupe_pattern")

    return _BRACES.sub(filled, pattern)


def _value(document: Any, path: str, *, what: str, field: str) -> Any:
    value = paths.read(document, path)
    if value is paths.NOTHING:
        raise InvalidInput(f"{what} is not there: the event has nothing at {path}.", field=field)
    try:
        return paths.check_value(value, what=f"{what}, at {path},")
    except InvalidInput as error:
        raise InvalidInput(str(error), field=field) from None


def _text(value: Any, what: str, field: str) -> str:
    """Gives a single value as text, as JSON writes it: no object, no list, nothing empty."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float) or not (text := str(value).strip()):
        raise InvalidInput(f"{what} must be a text or a number, but is {_kind(value)}.", field=field)
    if len(text) > LONGEST_ENTITY:
        raise InvalidInput(f"{what} is longer than {LONGEST_ENTITY} characters.", field=field)
    return text


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", type(None): "null", str: "empty"}
    return names.get(type(value), "something else")
