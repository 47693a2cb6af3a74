"""The queues that a pump takes its rows from, in turn: campaigns with their compiled content, and accounts' lanes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar
from urllib.parse import urlsplit

import structlog
from psycopg import Connection

from console.audience.unsubscribe import make_token
from console.config import Settings
from console.content.compile import Compiled, compile_content
from console.content.fill import Headers, Recipient, fill
from console.content.source import Source
from console.dispatch import recorder, work_store
from console.dispatch.asker import Statement
from console.dispatch.lanes import ContentBook, LaneLine
from console.dispatch.queues import OWN, Composer, Origin, Outlet, Queue
from console.dispatch.recorder import Claimed, Position
from console.dispatch.work_store import Job
from console.errors import InvalidInput
from console.providers.base import Message
from console.providers.names import names_of

log = structlog.get_logger(__name__)

# Rows that came back to the queue lie behind the place that the pump has reached; this often it looks from the start.
SWEEP_EVERY_S = 5.0
CAMPAIGN_EVENT = "campaign"
_DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")


@dataclass(slots=True)
class Line:
    """One campaign as a pump sees it."""

    statement: ClassVar[Statement] = recorder.CLAIM

    job: Job
    compiled: Compiled
    headers: Headers
    provider: str  # its name in routes
    is_named: bool = False  # whether the provider finds messages again by names of ours
    after: Position = recorder.QUEUE_START
    swept_at: float = 0.0
    rests_until: float = field(default=0.0)

    def claim_values(
        self, *, worker_id: int, limit: int, slot: int, through_ids: Sequence[int]
    ) -> dict[str, str | int | float]:
        """Gives the values for a claim behind the place that was reached."""
        return recorder.claim_values(
            worker_id=worker_id,
            account_id=self.job.account_id,
            campaign_id=self.job.campaign_id,
            list_id=self.job.list_id,
            age_cap_s=self.job.age_cap_s,
            provider=self.provider,
            route_size=self.job.route_size,
            places=self.job.places,
            limit=limit,
            after=self.after,
            slot=slot,
            through_ids=through_ids,
        )

    @property
    def account_id(self) -> int:
        return self.job.account_id

    @property
    def campaign_id(self) -> int | None:
        return self.job.campaign_id

    def composers(self, connection: Connection, rows: list[Claimed], now: float) -> list[Composer]:
        return [self] * len(rows)

    def origin(self, claimed: Claimed) -> Origin:
        return Origin(
            correlation_id=self.job.correlation_id,
            trigger_source=self.job.trigger_source,
            event=CAMPAIGN_EVENT,
            message_type=self.job.message_type,
            dedupe_key=f"campaign:{claimed.campaign_id}:{claimed.subscriber_id}",
        )

    def compose(self, claimed: Claimed, settings: Settings) -> Message:
        assert claimed.subscriber_id is not None
        token = make_token(
            settings.secret_key,
            account_id=claimed.account_id,
            list_id=self.job.list_id,
            subscriber_id=claimed.subscriber_id,
            send_id=claimed.id,
        )
        recipient = Recipient(
            email=claimed.email,
            values=claimed.merge_values,
            message_id=claimed.message_id,
            dated_at=claimed.dated_at,
            unsubscribe_url=f"{settings.base_url}/audience/unsubscribe/{token}",
            correlation_id=self.job.correlation_id,
        )
        filled = fill(self.compiled, recipient, self.headers)
        message = Message(filled.mail_from, filled.rcpt_to, filled.wire, filled.needs_smtputf8)
        if self.is_named:
            names = names_of(claimed.account_id, claimed.id, claimed.message_id)
            message = replace(message, key=names.key, tag=names.tag)
        return message


class JobBook:
    """What there is to send, read again at every tick and at every wake-up."""

    def __init__(self, settings: Settings, *, lane: str, outlet: Outlet = OWN):
        self._settings = settings
        self._lane = lane
        self._outlet = outlet
        self._lines: dict[tuple[int, int, int], Line] = {}
        self._lanes: dict[int, LaneLine] = {}
        self._contents = ContentBook(settings)
        self._read_at = float("-inf")
        self._turn = 0

    def wake(self) -> None:
        """Somebody has committed new work."""
        self._read_at = float("-inf")

    def next_line(self, now: float) -> Queue | None:
        """Gives the queue to claim from, in turn; None when none is known to have due rows."""
        lines: list[Queue] = [*self._lanes.values(), *self._lines.values()]
        for step in range(len(lines)):
            line = lines[(self._turn + step) % len(lines)]
            if line.rests_until <= now:
                self._turn += step + 1
                if now - line.swept_at > SWEEP_EVERY_S:
                    line.after, line.swept_at = recorder.QUEUE_START, now
                return line
        return None

    def found(self, line: Queue, last: Position | None, now: float) -> None:
        """Remembers how far a claim came; `last` None: there was no row behind the line's place."""
        if last is not None:
            line.after = last
        elif line.after != recorder.QUEUE_START:
            line.after, line.swept_at = recorder.QUEUE_START, now
        else:
            line.rests_until = now + self._settings.tick_s

    def is_stale(self, now: float) -> bool:
        return now - self._read_at >= self._settings.tick_s

    def read(self, connection: Connection, now: float) -> None:
        """Reads what there is to send; content is compiled once for each version."""
        self._read_at = now
        lanes = {}
        for account_id, slug in work_store.accounts_with_due(connection, self._lane, self._outlet.account_id):
            lane = self._lanes.get(account_id) or LaneLine(
                account_id, slug, self._lane, self._outlet.provider, self._contents
            )
            lane.rests_until = 0.0
            lanes[account_id] = lane
        self._lanes = lanes
        # Campaigns are bulk, whatever else is in that lane.
        lines = {}
        for job in (
            work_store.jobs(connection, self._outlet.account_id, self._outlet.provider) if self._lane == "bulk" else ()
        ):
            key = (job.account_id, job.campaign_id, job.version)
            line = self._lines.get(key) or self._open(connection, job)
            if line is not None:
                line.job, line.rests_until = job, 0.0
                lines[key] = line
        self._lines = lines

    def _open(self, connection: Connection, job: Job) -> Line | None:
        subject, sender, html, text = work_store.content(connection, job)
        try:
            compiled = compile_content(Source(subject=subject, sender=sender, html=html, text=text))
            headers = Headers(
                list_id=f"list-{job.list_id}.{job.account_slug}.{own_domain(self._settings.base_url)}",
                feedback_id=f"{job.campaign_id}:{job.account_slug}:campaign:sendonce",
                list_name=job.list_name,
            )
        except InvalidInput as error:
            # It was compiled when it was written; a newer program may judge otherwise. The other campaigns go on.
            log.error("campaign.content_refused", campaign_id=job.campaign_id, reason=str(error))
            return None
        return Line(
            job=job,
            compiled=compiled,
            headers=headers,
            provider=self._outlet.provider,
            is_named=self._outlet != OWN,
        )


def own_domain(base_url: str) -> str:
    """Gives the domain of our List-Ids; a console reached by a bare IPv6 address has none (RFC 2919, 3)."""
    host = urlsplit(base_url).hostname or ""
    return host if _DOMAIN.fullmatch(host) else "sendonce.invalid"
