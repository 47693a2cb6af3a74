"""What the scheduler does for campaigns. Every tick may run in any number of processes and be killed at any point.

Each gives how much it did; the scheduler calls it again while that is more than 0.
"""

from dataclasses import dataclass

import structlog
from sqlalchemy import Engine

from console.audience.address import parse
from console.campaigns import audience_store, store
from console.config import Settings
from console.content.sender import parse_sender
from console.db import transaction
from console.errors import Conflict
from console.sends.store import Chunk, cancel_campaign_rows, reserve_audience_chunk

log = structlog.get_logger(__name__)

# Addresses in one transaction. Measured by demo/bench_build.py with 1,000,000 subscribers on two busy cores: 50,000
# take 2.5 s, which is how long a pause may have to wait; 20,000 at a time cost a sixth more in all. The first chunk is
# small, so that sending begins at once.
CHUNK_ADDRESSES = 50_000
FIRST_ADDRESSES = 5_000
CANCEL_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Built:
    """One chunk: how many sends it made, and whether the audience is complete with it."""

    send_count: int
    is_complete: bool


def start_due(engine: Engine, settings: Settings) -> int:
    """Starts the approved campaigns whose time has come; gives how many it started or held.

    One that should have started longer ago than the late limit (everything was down) is paused with a note instead.
    """
    with transaction(engine) as session:
        held = store.hold_late(session, late_limit_h=settings.late_limit_h)
        started = store.start_due(session)
        if started:
            store.wake_workers(session)
    for account_id, campaign_id in held:
        log.warning("campaign.held", account_id=account_id, campaign_id=campaign_id)
    for account_id, campaign_id in started:
        log.info("campaign.started", account_id=account_id, campaign_id=campaign_id)
    return len(held) + len(started)


def build_audiences(engine: Engine, settings: Settings) -> int:
    """Reserves the next chunk of sends of every campaign that has started; gives how many chunks it made.

    A chunk, its counters and the cursor behind it are one transaction, so a kill loses a chunk whole or not at all.
    """
    with transaction(engine) as session:
        waiting = audience_store.unfinished(session)
    built = [build_chunk(engine, account_id=account_id, campaign_id=campaign_id) for account_id, campaign_id in waiting]
    return sum(chunk is not None for chunk in built)


def build_chunk(
    engine: Engine, *, account_id: int, campaign_id: int, chunk_addresses: int = CHUNK_ADDRESSES
) -> Built | None:
    """Reserves the sends of the next stretch of addresses; None when another builder is at it or nothing is left."""
    with transaction(engine) as session:
        taken = audience_store.take(session, account_id, campaign_id)
        if taken is None:
            return None
        after = taken.audience_cursor
        is_whole_list = after == "" and audience_store.has_at_most(
            session, account_id, list_id=taken.list_id, limit=chunk_addresses
        )
        upto = None
        if not is_whole_list:
            size = chunk_addresses if after else min(chunk_addresses, FIRST_ADDRESSES)
            upto = audience_store.end_of_chunk(session, account_id, after=after, size=size)
        chunk = Chunk(
            campaign_id=campaign_id,
            list_id=taken.list_id,
            started_at=taken.started_at,
            correlation_id=taken.correlation_id,
            sender_domain=parse(parse_sender(taken.sender).address).domain,
            fields=taken.fields,
            after=after,
            upto=upto,
        )
        send_count = reserve_audience_chunk(session, account_id, chunk=chunk, is_whole_list=is_whole_list)
        if not audience_store.advance(session, account_id, campaign_id, after=after, upto=upto):
            raise Conflict(f"The audience of campaign {campaign_id} was moved on by somebody who did not lock it.")
        store.wake_workers(session)
    log.info("audience.chunk_built", account_id=account_id, campaign_id=campaign_id, send_count=send_count)
    return Built(send_count=send_count, is_complete=upto is None)


def finish_done(engine: Engine, settings: Settings) -> int:
    """Moves campaigns with nothing left to do to sent; gives how many."""
    with transaction(engine) as session:
        finished = store.finish_done(session)
    for account_id, campaign_id in finished:
        log.info("campaign.sent", account_id=account_id, campaign_id=campaign_id)
    return len(finished)


def cancel_rest(engine: Engine, settings: Settings) -> int:
    """Cancels the sends of cancelled campaigns that are queued still, or queued again; gives how many."""
    with transaction(engine) as session:
        waiting = audience_store.cancelled_with_rows(session)
    cancelled_count = 0
    for account_id, campaign_id in waiting:
        with transaction(engine) as session:
            cancelled_count += cancel_campaign_rows(session, account_id, campaign_id=campaign_id, limit=CANCEL_ROWS)
    return cancelled_count
