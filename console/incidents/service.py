"""A timeline as it is asked for: by an address or any id, in a window; as one document, or as text for a ticket."""

import email
import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from email.policy import default
from typing import Any

from sqlalchemy.orm import Session

from console import clock
from console.audience.address import parse
from console.content.compile import compile_content
from console.content.fill import fill
from console.content.header import Headers
from console.content.source import Recipient, Source
from console.errors import InvalidInput, NotFound, SendonceError
from console.incidents import store, timeline, words
from console.incidents.comparing import Copy
from console.incidents.evidence import Enqueued, Evidence
from console.incidents.findings import Verdict
from console.incidents.timeline import Answers, Event
from console.incidents.verdict import judge

# Around what an id leads to.
AROUND = timedelta(minutes=15)
# Back from now, when only an address is given.
BACK = timedelta(days=1)
WINDOW_LIMIT = timedelta(days=92)
ID_CHARACTERS = 500
_CAMPAIGNS_MESSAGE_ID = re.compile(r"<[0-9a-f]{32}\.([0-9a-f]{1,15})@[^>]+>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What happened to a recipient in a window, what that answers, and why."""

    recipient: str
    start: datetime
    end: datetime
    message_type: str
    events: list[Event]
    answers: Answers
    verdict: Verdict
    copies: list[Copy]

    def document(self) -> dict[str, Any]:
        """Gives the JSON document."""
        return {
            "recipient": self.recipient,
            "events": [asdict(each) for each in self.events],
            "answers": asdict(self.answers),
            "verdict": asdict(self.verdict),
        }

    def text(self) -> str:
        """Gives it as text for a ticket."""
        asked = self.answers
        kind = f" of the type {self.message_type}" if self.message_type else ""
        lines = [
            f"Messages{kind} to {self.recipient}, {words.day(self.start)}, {words.clock(self.start)} to"
            f" {words.day(self.end)}, {words.clock(self.end)} UTC",
            "",
            f"{words.CAUSES[self.verdict.cause]}{'' if self.verdict.decided else ' (not decided)'}.",
            *(f"- {each}" for each in self.verdict.evidence),
            "",
            f"Which event happened: {words.listed(asked.events)}.",
            f"Which code path asked: {words.listed(asked.code_paths)}.",
            f"What was enqueued: {words.plural(asked.enqueued, 'message')}.",
            f"How often a provider accepted: {words.times(asked.accepts)}.",
            "",
            *(each.text for each in self.events),
        ]
        return "\n".join(lines) + "\n"


def show(
    session: Session,
    account_id: int,
    wanted: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    message_type: str | None = None,
) -> Timeline:
    """Gives the timeline of an address, or of the recipient that an id leads to: a send's number, a Message-ID, a
    provider's id, a dedupe key, a correlation id.

    Takes:  since, until: without them the last day of an address, or a quarter of an hour around what the id is of.
    Raises: InvalidInput naming the field; NotFound when the id leads nowhere.
    """
    email_lower, first_at, last_at = _found(session, account_id, wanted.strip())
    start, end = since or first_at, until or last_at
    if start >= end:
        raise InvalidInput("The window ends before it begins.", field="to")
    if end - start > WINDOW_LIMIT:
        raise InvalidInput(f"The window has more than {WINDOW_LIMIT.days} days; narrow it.", field="from")
    found = store.evidence(session, account_id, email_lower, since=start, until=end, message_type=message_type or None)
    return made(replace(found, enqueued=[_with_subject(each) for each in found.enqueued]))


def made(evidence: Evidence) -> Timeline:
    """Makes the timeline of what is on record."""
    return Timeline(
        recipient=evidence.recipient,
        start=evidence.start,
        end=evidence.end,
        message_type=evidence.message_type,
        events=timeline.events(evidence),
        answers=timeline.answers(evidence),
        verdict=judge(evidence),
        copies=[_copy(evidence, each) for each in evidence.enqueued],
    )


def _found(session: Session, account_id: int, wanted: str) -> tuple[str, datetime, datetime]:
    """Gives the recipient, and the window when none is given."""
    if not wanted or len(wanted) > ID_CHARACTERS or "\x00" in wanted:
        raise InvalidInput("Give an address, or an id of a message.", field="recipient")
    span = _span(session, account_id, wanted)
    if span is not None:
        return span.email_lower, span.first_at - AROUND, span.last_at + AROUND
    try:
        now = clock.now()
        return parse(wanted).email_lower, now - BACK, now + timedelta(minutes=1)
    except InvalidInput:
        raise NotFound(
            f"{wanted[:100]!r} is no address, and no message of this account has it as its number, Message-ID,"
            " provider's id, dedupe key or correlation id."
        ) from None


def _span(session: Session, account_id: int, wanted: str) -> Any | None:
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 19:
        span = store.span_of_number(session, account_id, int(wanted))
        if span is not None:
            return span
    if wanted.startswith("<"):
        campaigns = _CAMPAIGNS_MESSAGE_ID.fullmatch(wanted)
        campaign_id = int(campaigns[1], 16) if campaigns else None
        return store.span_of_message_id(session, account_id, wanted, campaign_id=campaign_id)
    if "@" in wanted and _is_address(wanted):
        return None
    return store.span_of_id(session, account_id, wanted)


def _is_address(wanted: str) -> bool:
    try:
        parse(wanted)
    except InvalidInput:
        return False
    return True


def _copy(evidence: Evidence, send: Enqueued) -> Copy:
    maker = evidence.maker_of(send)
    return Copy(
        send=send,
        enqueued_at=send.at,
        accepted_at=evidence.accepts_of(send),
        doubt_count=len(evidence.doubts_of(send)),
        entities=dict(maker.entities) if maker else {},
    )


def _with_subject(send: Enqueued) -> Enqueued:
    """Gives the send with its subject as the recipient read it; as it was written, where it can't be made."""
    try:
        compiled = compile_content(Source(subject=send.subject, sender="x@example.com", html="x", text="x"))
        recipient = Recipient(email="x@example.com", values=send.params, message_id="<x@example.com>", dated_at=send.at)
        wire = fill(compiled, recipient, Headers(list_id=None, feedback_id="x:x:x:x")).wire
    except SendonceError:
        return send
    return replace(send, subject=str(email.message_from_bytes(wire, policy=default)["Subject"]))
