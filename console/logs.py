"""Logs on stderr: JSON lines, or readable on a terminal, with the correlation id bound and addresses masked.

Modules log with structlog.get_logger(); the libraries' own logging goes through the same processors.
"""

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

# What these tell below that level (each job and connection, each tick that is skipped because its last run still goes
# on) is either told by our own events or no news.
QUIET_LIBRARIES = {
    "alembic": logging.WARNING,
    "apscheduler": logging.ERROR,
    "httpx": logging.WARNING,
    "waitress": logging.WARNING,
    "waitress.queue": logging.ERROR,
    "urllib3": logging.WARNING,
}
# A Message-ID looks like an address and is the very thing that a log is searched for.
PLAIN_FIELDS = frozenset({"message_id"})

_QUOTED_LOCAL_PART = re.compile(r'"[^"\n]*"(?=@)')
# The secret part of an endpoint's address (inbox/receive_views.py).
_INBOX_TOKEN = re.compile(r"(/inbox/(?:reports/)?[^/\s]{1,100}/)[A-Za-z0-9_-]{43}")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]*(?=@)")
_FORM: dict[str, bool] = {}
# One pass over words, each looked at once: a pattern for whole addresses would try every start of a long line again.
_WORD = re.compile(r"[^\s<>\"(),;:\[\]=]+")


def set_up(log_format: str, *, level: int = logging.INFO) -> None:
    """Sends all logs to stderr, as JSON or as text ('auto': text on a terminal)."""
    is_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    _FORM["is_text"] = is_text
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    handler = _StderrHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, mask_fields, _renderer(is_text)],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name, quiet_level in QUIET_LIBRARIES.items():
        logging.getLogger(name).setLevel(quiet_level)


def line_start(event: str, logger: str, at: datetime) -> str:
    """Gives the start of a log line made by hand, for paths where a call of structlog costs too much.

    Behind it come `line_fields` and `line_end`, whose values are as JSON writes them, with addresses masked.
    """
    return _start(event, logger, bool(_FORM.get("is_text"))) % at.isoformat().replace("+00:00", "Z")


def line_fields(names: tuple[str, ...], values: tuple[object, ...]) -> str:
    """Gives fields in the middle of such a line."""
    return _fields(names, bool(_FORM.get("is_text"))) % values


def line_end(names: tuple[str, ...], values: tuple[object, ...]) -> str:
    """Gives the last fields of such a line, and its end."""
    if _FORM.get("is_text"):
        return _fields(names, True) % values + "\n"
    return (_fields(names, False) % values)[:-2] + "}\n"


def write_lines(lines: list[str]) -> None:
    """Writes lines of `line` at once; nothing before logs are set up, since the form is not known."""
    if not _FORM:
        return
    # Nowhere to write to is no reason to stop sending.
    with suppress(OSError, ValueError):
        sys.stderr.write("".join(lines))
        sys.stderr.flush()


@contextmanager
def correlated(correlation_id: str) -> Iterator[None]:
    """Binds the correlation id to all that this thread logs in the block."""
    with structlog.contextvars.bound_contextvars(correlation_id=correlation_id):
        yield


def mask(text: str) -> str:
    """Gives the text with each address cut to its first letter and domain (a***@example.com), and no credentials."""
    text = _INBOX_TOKEN.sub(r"\1***", text)
    if "@" not in text and "%40" not in text:
        return text
    return _WORD.sub(_masked_word, _QUOTED_LOCAL_PART.sub("***", _CREDENTIALS.sub("***", text)))


def mask_fields(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Masks addresses in every field of an event, however deep (a structlog processor)."""
    return {name: value if name in PLAIN_FIELDS else _masked(value) for name, value in event.items()}


def _masked_word(match: re.Match[str]) -> str:
    for sign in ("@", "%40"):
        local_part, found, domain = match[0].rpartition(sign)
        if found and domain and local_part and not local_part.endswith("***"):
            return f"{local_part[0]}***{sign}{domain}"
    return match[0]


def _masked(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | datetime():
            return value
        case str():
            return mask(value)
        case bytes():
            return mask(value.decode("utf-8", "backslashreplace"))
        case Mapping():
            return {mask(str(name)): _masked(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_masked(inner) for inner in value]
        case _:
            return mask(str(value))


@lru_cache(maxsize=16)
def _start(event: str, logger: str, is_text: bool) -> str:
    if is_text:
        return f"%s [info     ] {event:<30} [{logger}] "
    return f'{{"at": "%s", "level": "info", "logger": "{logger}", "event": "{event}", '


@lru_cache(maxsize=16)
def _fields(names: tuple[str, ...], is_text: bool) -> str:
    return "".join(f"{name}=%s " if is_text else f'"{name}": %s, ' for name in names)


def _renderer(is_text: bool) -> Processor:
    if is_text:
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)


class _StderrHandler(logging.Handler):
    """Writes to what sys.stderr is at that moment, which a progress bar may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            self.handleError(record)
