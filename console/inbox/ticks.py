"""What the scheduler does for the inbox. Every tick may run in any number of processes and be killed at any point.

Each gives how much it did; the scheduler calls it again while that is more than 0.
"""

from collections.abc import Callable

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from console.config import Settings
from console.db import transaction
from console.inbox import bounce_reading, event_store, mailboxes, queue_store, reading, report_reading
from console.inbox.queue_store import Outcome, Taken
from console.logs import correlated
from console.sends import outcome

log = structlog.get_logger(__name__)

# Events in one run of the tick; the scheduler runs it again at once.
EVENTS = 100
# How long an event waits that met somebody else's lock, or trouble of the database that may pass.
WAIT_S = 5.0


Read = Callable[[Session, Taken], Outcome]


def read_events(engine: Engine, settings: Settings) -> int:
    """Reads events that wait, each in a transaction with the send that it makes; gives how many it was done with."""
    for done_count in range(EVENTS):
        if not read_next(engine):
            return done_count
    return EVENTS


def read_reports(engine: Engine, settings: Settings) -> int:
    """Reads what providers report, and settles sends that were on their way when it came; gives how many it was."""
    settled_count = outcome.settle_reported(engine)
    for done_count in range(EVENTS):
        if not read_next(engine, reader="reports", read=report_reading.read_event):
            return settled_count + done_count
    return settled_count + EVENTS


def visit_mailboxes(engine: Engine, settings: Settings) -> int:
    """Fetches new mails from the bounce mailbox that is due; gives how many mailboxes that was: 1 or 0."""
    return int(mailboxes.visit_next(engine, settings))


def read_bounces(engine: Engine, settings: Settings) -> int:
    """Reads what mail servers report by mail; gives how many mails it was done with."""
    for done_count in range(EVENTS):
        if not read_next(engine, reader=bounce_reading.READER, read=bounce_reading.read_event):
            return done_count
    return EVENTS


def read_next(engine: Engine, *, reader: str = "rules", read: Read = reading.read_event) -> bool:
    """Reads the next event for this reader that nobody else is reading; False when there is none."""
    taken: Taken | None = None
    try:
        with transaction(engine) as session:
            taken = queue_store.take(session, reader=reader)
            if taken is None:
                return False
            with correlated(taken.correlation_id):
                done = read(session, taken)
                queue_store.finish(session, taken, done)
                double_count = queue_store.note_doubles(session, taken)
                _tell(taken, status=done.status, double_count=double_count)
    except OperationalError as error:
        # A lock that somebody else holds, a deadlock, a full disk: it passes, and this event is not what is wrong.
        if taken is None or error.connection_invalidated:
            raise
        _postpone(engine, taken, reason=str(error.orig).partition("\n")[0])
    except Exception as error:
        # A rule and its event are other people's: whatever they make happen is this event's failure, and the next
        # event is read all the same.
        if taken is None:
            raise
        log.error("inbox.event_broke", inbox_event_id=taken.id, exc_info=error)
        _fail(engine, taken, reason=f"It could not be read: {type(error).__name__}. The log has the details.")
    return True


def forget_bodies(engine: Engine, settings: Settings) -> int:
    """Empties the bodies of events that are older than bodies are kept; gives how many."""
    if settings.inbox_body_days == 0:
        return 0
    with transaction(engine) as session:
        return event_store.forget_bodies(session, older_days=settings.inbox_body_days)


def _postpone(engine: Engine, taken: Taken, *, reason: str) -> None:
    log.warning("inbox.event_postponed", inbox_event_id=taken.id, reason=reason, wait_s=WAIT_S)
    with transaction(engine) as session:
        queue_store.postpone(session, taken, wait_s=WAIT_S)


def _fail(engine: Engine, taken: Taken, *, reason: str) -> None:
    # Another replica may have come to the same end meanwhile; then this writes nothing.
    with transaction(engine) as session:
        if queue_store.finish(session, taken, reading.failed(reason)):
            queue_store.note_doubles(session, taken)


def _tell(taken: Taken, *, status: str, double_count: int) -> None:
    log.info("inbox.event_read", inbox_event_id=taken.id, account_id=taken.account_id, status=status)
    if double_count:
        log.warning("inbox.subscribed_twice", inbox_event_id=taken.id, account_id=taken.account_id)
