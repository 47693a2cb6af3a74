"""The queues of what belongs to no campaign: one for each account and lane, with the contents of their rows."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from psycopg import Connection

from console.config import Settings
from console.content.compile import Compiled, compile_content, compile_rendered
from console.content.fill import fill
from console.content.header import Headers
from console.content.source import Recipient, Unfillable
from console.dispatch import recorder, work_store
from console.dispatch.asker import Statement
from console.dispatch.queues import Composer, Origin
from console.dispatch.recorder import Claimed, Position
from console.errors import InvalidInput
from console.providers.base import Message
from console.providers.names import names_of

# Compiled contents that are kept; one takes some 100 kB.
CONTENTS_KEPT = 200


@dataclass(frozen=True, slots=True)
class Kind:
    """Messages of one type with one content."""

    job: work_store.Terms
    compiled: Compiled | None  # None: it can't be compiled, for the reason
    reason: str
    headers: Headers

    def origin(self, claimed: Claimed) -> Origin:
        return Origin(
            correlation_id=claimed.correlation_id,
            trigger_source=claimed.trigger_source or "",
            event=claimed.event or "",
            message_type=claimed.message_type or "",
            dedupe_key=claimed.dedupe_key,
        )

    def compose(self, claimed: Claimed, settings: Settings) -> Message:
        if self.compiled is None:
            raise Unfillable(self.reason)
        recipient = Recipient(
            email=claimed.email,
            values=claimed.merge_values,
            message_id=claimed.message_id,
            dated_at=claimed.dated_at,
            correlation_id=claimed.correlation_id,
        )
        filled = fill(self.compiled, recipient, self.headers)
        names = names_of(claimed.account_id, claimed.id, claimed.message_id)
        return Message(
            filled.mail_from, filled.rcpt_to, filled.wire, filled.needs_smtputf8, key=names.key, tag=names.tag
        )


class ContentBook:
    """Compiles each content once, and reads a message type's terms again at every tick."""

    def __init__(self, settings: Settings):
        self._tick_s = settings.tick_s
        self._compiled: OrderedDict[tuple[int, int], tuple[Compiled | None, str]] = OrderedDict()
        self._kinds: dict[tuple[int, str, int], Kind] = {}
        self._read_at = float("-inf")

    def kind(self, connection: Connection, claimed: Claimed, *, slug: str, now: float) -> Kind:
        """Gives what makes the row's message. Raises: psycopg.OperationalError."""
        assert claimed.message_type is not None
        assert claimed.content_id is not None
        if now - self._read_at >= self._tick_s:
            self._kinds, self._read_at = {}, now
        key = (claimed.account_id, claimed.message_type, claimed.content_id)
        if key not in self._kinds:
            compiled, reason = self._content(connection, claimed.account_id, claimed.content_id)
            self._kinds[key] = Kind(
                job=work_store.terms(connection, claimed.account_id, claimed.message_type),
                compiled=compiled,
                reason=reason,
                headers=Headers(list_id=None, feedback_id=f"{claimed.message_type}:{slug}:single:sendonce"),
            )
        return self._kinds[key]

    def _content(self, connection: Connection, account_id: int, content_id: int) -> tuple[Compiled | None, str]:
        key = (account_id, content_id)
        if key not in self._compiled:
            source, is_rendered = work_store.send_content(connection, account_id, content_id)
            try:
                self._compiled[key] = (compile_rendered if is_rendered else compile_content)(source), ""
            except InvalidInput as error:
                # It was compiled when it was written; a newer program may judge otherwise. The others go on.
                self._compiled[key] = None, str(error)
            if len(self._compiled) > CONTENTS_KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return self._compiled[key]


@dataclass(slots=True)
class LaneLine:
    """One account's rows of one lane that are in no campaign."""

    statement: ClassVar[Statement] = recorder.CLAIM_LANE

    account_id: int
    account_slug: str
    lane: str
    provider: str
    contents: ContentBook
    after: Position = recorder.QUEUE_START
    swept_at: float = 0.0
    rests_until: float = 0.0

    @property
    def campaign_id(self) -> None:
        return None

    def claim_values(
        self, *, worker_id: int, limit: int, slot: int, through_ids: Sequence[int]
    ) -> dict[str, str | int | float]:
        return recorder.claim_lane_values(
            worker_id=worker_id,
            account_id=self.account_id,
            lane=self.lane,
            provider=self.provider,
            limit=limit,
            after=self.after,
            through_ids=through_ids,
        )

    def composers(self, connection: Connection, rows: list[Claimed], now: float) -> list[Composer]:
        return [self.contents.kind(connection, row, slug=self.account_slug, now=now) for row in rows]
