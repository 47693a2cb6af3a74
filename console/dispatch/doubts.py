"""Settles messages in doubt whose providers allow it without a person: asks for them, or hands them over once more.

What to do is providers/doubt.py's to say, and when is in the database: any process goes on where another ended.
Look-ups are made outside transactions, and what comes of them is written by compare-and-set.
"""

import threading
from datetime import timedelta
from typing import assert_never

import psycopg
import structlog

from console.config import Settings
from console.dispatch import doubt_store, work_store
from console.dispatch.doubt_store import Doubt
from console.dispatch.link import Connect
from console.errors import ConfigError
from console.providers.base import Accepted, Finding, Message, NotThere, Provider, Unknown
from console.providers.doubt import Step, plan
from console.providers.names import names_of
from console.providers.registry import capabilities_of, open_provider
from console.providers.store import Configured

log = structlog.get_logger(__name__)

# Messages of one round; the lease is longer than all their look-ups can take, one group after the other.
MOST_AT_ONCE = 16
LOOK_UPS_AT_ONCE = 4
LEASE_S = 600.0
# What is not handed over again by its key's window (an own choice, or proof of absence) may be within this.
QUEUE_LIMIT = timedelta(days=1)
# One that waits in the queue once more is looked after this often.
FOLLOW_EVERY = timedelta(minutes=1)
LONGEST_WORDS = 2000


class Doubts(threading.Thread):
    """The thread of a process that does so, until `is_over`. A thread that waits for a provider holds up no exit."""

    def __init__(self, settings: Settings, connect: Connect, is_over: threading.Event):
        super().__init__(name="doubts", daemon=True)
        self._settings = settings
        self._connect = connect
        self._is_over = is_over
        self._ways = Ways(settings)

    def run(self) -> None:
        connection: psycopg.Connection | None = None
        wait_s = 0.0
        while not self._is_over.wait(wait_s):
            try:
                connection = connection or self._connect()
                wait_s = 0.0 if settle(connection, self._settings, self._ways) else self._settings.tick_s
            except psycopg.OperationalError as error:
                log.warning("doubts.database_lost", reason=str(error).strip().partition("\n")[0])
                connection, wait_s = None, self._settings.tick_s
            except Exception as error:
                log.error("doubts.failed", exc_info=error)
                wait_s = self._settings.tick_s
        if connection is not None:
            connection.close()


class Ways:
    """The configured providers by their names in the registry, opened when they are asked first."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._rows: dict[str, Configured] = {}
        self._open: dict[str, tuple[int, Provider]] = {}

    def read(self, connection: psycopg.Connection) -> list[Configured]:
        """Reads them as they are now; gives those that can settle a message that they did not answer."""
        self._rows = {row.full_name: row for row in work_store.configured_providers(connection)}
        return [row for row in self._rows.values() if capabilities_of(row).may_settle]

    def row(self, name: str) -> Configured | None:
        return self._rows.get(name)

    def opened(self, row: Configured) -> Provider:
        """Gives the adapter for the settings of now. Raises: ConfigError."""
        version, provider = self._open.get(row.full_name, (0, None))
        if provider is None or version != row.version:
            provider = open_provider(self._settings, row)
            self._open[row.full_name] = row.version, provider
        return provider


def settle(connection: psycopg.Connection, settings: Settings, ways: Ways) -> int:
    """Takes every step that is due now, up to a number; gives how many, 0 when there is nothing more to do."""
    settling = ways.read(connection)
    noted = doubt_store.note(connection, [(row.account_id, row.full_name) for row in settling]) if settling else 0
    taken = doubt_store.take(connection, limit=MOST_AT_ONCE, lease_s=LEASE_S)
    asked = [doubt for doubt in taken if _step(connection, doubt, ways.row(doubt.provider), settings)]
    for start in range(0, len(asked), LOOK_UPS_AT_ONCE):
        group = asked[start : start + LOOK_UPS_AT_ONCE]
        for doubt, finding in zip(group, _look_up(group, ways), strict=True):
            _found(connection, doubt, finding)
    return noted + len(taken)


def _step(connection: psycopg.Connection, doubt: Doubt, row: Configured | None, settings: Settings) -> bool:
    """Takes the step that is due; gives True when it is to look the message up, which is left to the caller."""
    if doubt.status != "in_doubt":
        _follow(connection, doubt, settings)
        return False
    if row is None:
        doubt_store.postpone(connection, doubt, None)
        return False
    capabilities = capabilities_of(row)
    made = plan(
        capabilities,
        policy=doubt.policy,
        first_at=doubt.first_at,
        now=doubt.now,
        look_up_count=doubt.look_up_count,
        was_absent=doubt.was_absent,
        may_hand_over=doubt.may_hand_over,
    )
    waits = doubt.is_away or (doubt.is_paused and made.step is not Step.LOOK_UP)
    if made.step is Step.HOLD:
        doubt_store.postpone(connection, doubt, None)
    elif made.not_before > doubt.now or waits:
        doubt_store.postpone(connection, doubt, max(made.not_before, doubt.now + timedelta(seconds=settings.tick_s)))
    elif made.step is Step.LOOK_UP:
        return True
    else:
        window_end = doubt.first_at + timedelta(seconds=capabilities.safe_window_s)
        is_in_window = made.step is Step.RESEND_SAME_KEY and window_end > doubt.now
        until = window_end if is_in_window else doubt.now + QUEUE_LIMIT
        if doubt_store.queue_again(connection, doubt, route_name=row.name, until=until, follow_after=FOLLOW_EVERY):
            log.info("doubt.handed_over_again", send_id=doubt.send_id, provider=doubt.provider, step=made.step.value)
    return False


def _follow(connection: psycopg.Connection, doubt: Doubt, settings: Settings) -> None:
    """Looks after one that is not in doubt now: on its way again, or settled."""
    if doubt.status == "queued" and doubt.bound_until is not None:
        if doubt.bound_until > doubt.now:
            doubt_store.postpone(connection, doubt, min(doubt.bound_until, doubt.now + FOLLOW_EVERY))
        else:
            doubt_store.doubt_again(connection, doubt)
    elif doubt.status == "sending":
        doubt_store.postpone(connection, doubt, doubt.now + timedelta(seconds=settings.tick_s))
    else:
        doubt_store.forget(connection, doubt)


def _look_up(group: list[Doubt], ways: Ways) -> list[Finding]:
    """Asks for all of the group at the same time."""
    findings: list[Finding] = [Unknown("not asked")] * len(group)

    def ask(place: int) -> None:
        findings[place] = _ask(group[place], ways)

    threads = [threading.Thread(target=ask, args=(place,), daemon=True) for place in range(len(group))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return findings


def _ask(doubt: Doubt, ways: Ways) -> Finding:
    row = ways.row(doubt.provider)
    assert row is not None
    names = names_of(doubt.account_id, doubt.send_id, doubt.message_id)
    message = Message(mail_from="", rcpt_to=doubt.email, wire=b"", key=names.key, tag=names.tag)
    try:
        return ways.opened(row).find(message)
    except ConfigError as error:
        return Unknown(str(error))


def _found(connection: psycopg.Connection, doubt: Doubt, finding: Finding) -> None:
    asked = names_of(doubt.account_id, doubt.send_id, doubt.message_id).tag
    answer, words, provider_id = "unknown", "", None
    match finding:
        case Accepted(reply, provider_id):
            answer, words = "found", reply.text
        case NotThere(reply):
            answer, words = "absent", reply.text
        case Unknown(reason):
            words = reason
        case never:
            assert_never(never)
    doubt_store.record_look_up(
        connection, doubt, asked=asked, answer=answer, words=words[:LONGEST_WORDS], provider_id=provider_id
    )
    log.info("doubt.looked_up", send_id=doubt.send_id, provider=doubt.provider, answer=answer)
