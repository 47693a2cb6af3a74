"""A recipient's values as templates see them: each knows its path, and using one that is missing is noted, not printed.

Missing means: not there, null, or text of nothing but blanks. All three fail the message unless the template names
a fallback, because `Hello ,` is as wrong as `Hello None,`.
"""

from collections.abc import Iterator
from typing import Any

from jinja2.exceptions import TemplateRuntimeError
from jinja2.runtime import Undefined

# More rounds of loops than any newsletter has; with language.NODES_LIMIT the worst template ends within a second.
LOOP_ROUNDS_LIMIT = 2_000

# How long all texts that `~` and filters make for one message may be together; a part may have a fifth of it.
MADE_CHARS_LIMIT = 5_000_000

# Not a name that a template can write, so the run can't be reached from one.
RUN_KEY = " run"


class Run:
    """The notes of filling one message: missing fields, and how much it may still loop and make."""

    __slots__ = ("chars_left", "missing", "rounds_left")

    def __init__(self) -> None:
        self.missing: dict[str, None] = {}
        self.rounds_left = LOOP_ROUNDS_LIMIT
        self.chars_left = MADE_CHARS_LIMIT

    def take_rounds(self, count: int) -> None:
        """Counts rounds of a loop down. Raises: TemplateRuntimeError when too many were asked for."""
        self.rounds_left -= count
        if self.rounds_left < 0:
            raise TemplateRuntimeError(f"its loops go around more than {LOOP_ROUNDS_LIMIT} times")

    def take_chars(self, count: int) -> None:
        """Counts the text that is made down. Raises: TemplateRuntimeError when it is too much."""
        self.chars_left -= count
        if self.chars_left < 0:
            raise TemplateRuntimeError(f"its filters and ~ make more than {MADE_CHARS_LIMIT:,} characters")


class Missing(Undefined):
    """A value that isn't there. It is false and equal to nothing; every other use notes its path in the run."""

    __slots__ = ("path", "run")

    def __init__(self, path: str, run: Run):
        super().__init__(name=path)
        self.path = path
        self.run = run

    def note(self) -> str:
        """Notes that a message needs this value; gives an empty text so that filling finds the other gaps too."""
        self.run.missing[self.path] = None
        return ""

    def __str__(self) -> str:
        return self.note()

    def __html__(self) -> str:
        return self.note()

    def __len__(self) -> int:
        self.note()
        return 0

    def __iter__(self) -> Iterator[Any]:
        self.note()
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__

    def _noted_and_still_missing(self, *_: Any) -> "Missing":
        self.note()
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __neg__ = __pos__ = __round__ = _noted_and_still_missing  # type: ignore[assignment]

    def _noted_and_false(self, *_: Any) -> bool:
        self.note()
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _noted_and_false  # type: ignore[assignment]

    def __int__(self) -> int:
        self.note()
        return 0

    def __float__(self) -> float:
        self.note()
        return 0.0


class Branch:
    """A JSON object among the values; a template may only ask for its keys."""

    __slots__ = ("_content", "path", "run")

    def __init__(self, content: dict[str, Any], path: str, run: Run):
        self._content = content
        self.path = path
        self.run = run

    def pick(self, key: object) -> Any:
        """Gives the value under the key, a Missing when there is none."""
        return known(self._content.get(str(key)), f"{self.path}.{key}", self.run)

    def __len__(self) -> int:
        return len(self._content)

    def __str__(self) -> str:
        raise TemplateRuntimeError(f"{self.path} is a group of values, not a text")


class Series:
    """A JSON array among the values; a template may loop over it, count it and pick by position."""

    __slots__ = ("_content", "path", "run")

    def __init__(self, content: list[Any], path: str, run: Run):
        self._content = content
        self.path = path
        self.run = run

    def pick(self, key: object) -> Any:
        """Gives the element at the position, a Missing when there is none."""
        path = f"{self.path}[{key}]"
        if isinstance(key, int) and -len(self._content) <= key < len(self._content):
            return known(self._content[key], path, self.run)
        return Missing(path, self.run)

    def __len__(self) -> int:
        return len(self._content)

    def __iter__(self) -> Iterator[Any]:
        self.run.take_rounds(len(self._content))
        return iter([known(each, self.path, self.run) for each in self._content])

    def __str__(self) -> str:
        raise TemplateRuntimeError(f"{self.path} is a list of values, not a text")


def known(value: Any, path: str, run: Run) -> Any:
    """Gives a JSON value as templates see it: texts with plain line ends, numbers, Branch, Series or Missing."""
    if isinstance(value, str):
        if not value or value.isspace():
            return Missing(path, run)
        return value.replace("\r\n", "\n").replace("\r", "\n") if "\r" in value else value
    if value is None:
        return Missing(path, run)
    if isinstance(value, dict):
        return Branch(value, path, run)
    if isinstance(value, list):
        return Series(value, path, run)
    return value


def pick(parent: Any, key: object) -> Any:
    """Gives `parent.key` for a template. Raises: TemplateRuntimeError for anything that has no keys."""
    if isinstance(parent, Branch | Series):
        return parent.pick(key)
    if isinstance(parent, Missing):
        return Missing(f"{parent.path}.{key}", parent.run)
    raise TemplateRuntimeError(f"a plain value was asked for its part {key!r}")
