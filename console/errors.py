"""What the caller did wrong, one class per answer. Shown to people: say what happened and what to do next.

What the world answers (a provider, a duplicate, a suppression) is a value and does not belong here.
"""

from dataclasses import dataclass


class SendonceError(Exception):
    """The base of all errors that are meant for a person; its text is a whole sentence."""


class ConfigError(SendonceError):
    """A setting is wrong; the text names the variable. Stops the start."""


class DatabaseError(SendonceError):
    """The database can't be used: unreachable, too old, or not migrated."""


class InvalidInput(SendonceError):
    """A value was refused; `field` names it (a form field, a CSV column, a command line option)."""

    def __init__(self, message: str, *, field: str | None = None):
        super().__init__(message)
        self.field = field


class NotFound(SendonceError):
    """There is no such row in this account."""


class Conflict(SendonceError):
    """A compare-and-set lost: somebody else, or the clock, has moved the row on. The text says to where."""


class Forbidden(SendonceError):
    """This person may not do this; the text says who may."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one of several fields: its path (params.lines[0], a header's or parameter's name) and why."""

    field: str
    detail: str
