"""Measures the audience build against a bare INSERT ... SELECT DISTINCT ON into an equally indexed table.

Wants an empty, migrated database that may be filled; `sendonce bench` makes one and throws it away.
"""

import resource
import time
from dataclasses import dataclass

from sqlalchemy import Engine

from console.accounts import service as accounts
from console.audience import store as audience
from console.campaigns import service, ticks
from console.config import Settings
from console.db import transaction
from console.demo import bench_build_store


@dataclass(frozen=True)
class BuildFigures:
    """What was measured. `grown_bytes` is how much this process grew while building."""

    subscriber_count: int
    send_count: int
    bare_s: float
    build_s: float
    longest_chunk_s: float
    grown_bytes: int

    @property
    def ratio(self) -> float:
        """How many times as long as the bare INSERT the build takes; at most 3 is promised."""
        return self.build_s / self.bare_s


def measure(engine: Engine, settings: Settings, *, subscriber_count: int) -> BuildFigures:
    """Fills the database with one list of `subscriber_count` people and builds a campaign's audience from it."""
    account_id, campaign_id, list_id = _prepare(engine, subscriber_count)
    bare_s = bench_build_store.bare_insert_s(engine, account_id, list_id=list_id)
    _approve_and_start(engine, settings, account_id, campaign_id)
    bench_build_store.settle(engine)
    before_bytes = _peak_bytes()
    chunks_s: list[float] = []
    send_count = 0
    began = time.perf_counter()
    is_complete = False
    while not is_complete:
        chunk_began = time.perf_counter()
        built = ticks.build_chunk(engine, account_id=account_id, campaign_id=campaign_id)
        chunks_s.append(time.perf_counter() - chunk_began)
        if built is None:
            raise RuntimeError("Somebody else builds this audience; the measurement needs a database of its own.")
        send_count += built.send_count
        is_complete = built.is_complete
    return BuildFigures(
        subscriber_count=subscriber_count,
        send_count=send_count,
        bare_s=bare_s,
        build_s=time.perf_counter() - began,
        longest_chunk_s=max(chunks_s),
        grown_bytes=_peak_bytes() - before_bytes,
    )


def _prepare(engine: Engine, subscriber_count: int) -> tuple[int, int, int]:
    """Gives account, campaign (a draft) and list."""
    with transaction(engine) as session:
        account = accounts.add_account(session, "bench-build")
        author = accounts.add_user(
            session, account.id, email="author@example.com", name="Author", roles=["marketer"], password="bench-bench"
        )
        list_id = audience.make_list(session, account.id, "Everybody")
        bench_build_store.fill(session, account.id, list_id=list_id, subscriber_count=subscriber_count)
        draft = service.Draft(
            name="Bench",
            list_id=list_id,
            subject="News for {{ first_name }}",
            sender="News <news@example.com>",
            html="<p>Hello {{ first_name }} in {{ city }}</p>",
        )
        campaign_id = service.create(session, account.id, author_id=author.id, draft=draft)
    return account.id, campaign_id, list_id


def _approve_and_start(engine: Engine, settings: Settings, account_id: int, campaign_id: int) -> None:
    with transaction(engine) as session:
        approver = accounts.add_user(
            session, account_id, email="boss@example.com", name="Boss", roles=["admin"], password="bench-bench"
        )
        service.submit(session, account_id, campaign_id, user_id=approver.id)
        service.approve(session, account_id, campaign_id, user_id=approver.id)
    ticks.start_due(engine, settings)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
