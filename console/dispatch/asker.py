"""One statement at a time on a PostgreSQL connection, without waiting for its result: the thread goes on meanwhile.

Uses psycopg's documented wrapper of libpq (psycopg.pq). Each statement gives one row with one JSON value.
"""

import json
import re
import select
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

_BY_KEY = ("enable_seqscan = off", "enable_hashjoin = off", "enable_mergejoin = off")
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def connect(database_url: str) -> psycopg.Connection:
    """Opens a connection that commits each statement by itself, for the statements of dispatch.

    All of them find few rows by their keys, so their plans are made once and bound to indexes, whatever the statistics
    of a table that fills and empties say. Measured: planning the record statement afresh took 1 ms of its 2 ms; a plan
    made from guesses reads all queued rows for a claim of 20 (5 ms instead of 1 ms at 20,000 rows).
    """
    connection = psycopg.connect(database_url, autocommit=True, connect_timeout=5, application_name="sendonce dispatch")
    for setting in ("plan_cache_mode = force_generic_plan", *_BY_KEY):
        connection.execute(f"SET {setting}".encode())
    return connection


class Statement:
    """A statement that is prepared once a connection; its text names parameters as %(name)s."""

    def __init__(self, name: str, text: str):
        self.name = name.encode()
        self.parameters = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
        numbers = {parameter: number for number, parameter in enumerate(self.parameters, start=1)}
        self.text = _PLACEHOLDER.sub(lambda found: f"${numbers[found.group(1)]}", text)


class Asker:
    """See the module. Between `ask` and the result nothing else may use the connection."""

    def __init__(self, connection: psycopg.Connection):
        self.connection = connection
        self._pg = connection.pgconn
        self._prepared: set[bytes] = set()
        self.is_waiting = False

    def fileno(self) -> int:
        return self._pg.socket

    def ask(self, statement: Statement, values: Mapping[str, str | int | float]) -> None:
        """Sends the statement; `values` in the text form that PostgreSQL reads (see the functions below for arrays)."""
        if statement.name not in self._prepared:
            result = self._pg.prepare(statement.name, statement.text.encode())
            if result.status != ExecStatus.COMMAND_OK:
                raise psycopg.OperationalError(result.error_message.decode("utf-8", "replace"))
            self._prepared.add(statement.name)
        self._pg.send_query_prepared(statement.name, [str(values[name]).encode() for name in statement.parameters])
        while self._pg.flush():
            select.select([self._pg.socket], [self._pg.socket], [])
            self._pg.consume_input()
        self.is_waiting = True

    def hear(self) -> Any | None:
        """Gives the result's value when it is complete, else None.

        Raises: psycopg.OperationalError when the connection or the statement failed.
        """
        self._pg.consume_input()
        if not self.is_waiting or self._pg.is_busy():
            return None
        value, trouble = None, b""
        while (result := self._pg.get_result()) is not None:
            if result.status == ExecStatus.TUPLES_OK:
                value = result.get_value(0, 0)
            else:
                trouble = result.error_message
        self.is_waiting = False
        if trouble or value is None:
            raise psycopg.OperationalError(trouble.decode("utf-8", "replace") or "the statement gave no row")
        return json.loads(value)


def number_array(values: Iterable[int | float | None]) -> str:
    """Gives the array in PostgreSQL's text form."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def text_array(values: Iterable[str | None]) -> str:
    """Gives the array in PostgreSQL's text form, whatever the texts hold."""
    return (
        "{"
        + ",".join(
            [
                "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
                for value in values
            ]
        )
        + "}"
    )
