"""From rows to a timeline: each row becomes a sentence with its exact time and the gap before it. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from console.incidents import words
from console.incidents.evidence import Asked, Came, Decided, Enqueued, Evidence, Redelivered, Reported, Tried

# What happens at one instant is told in this order.
_ORDER = ("webhook", "redelivery", "trigger", "enqueued", "handed_over", "answer", "report", "decision", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened. `ids` lead to its row and to its traces elsewhere."""

    at: datetime
    kind: str
    text: str
    ids: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The four questions: which events, which code paths, how many enqueued, how many accepted."""

    events: Sequence[str]
    code_paths: Sequence[str]
    enqueued: int
    accepts: int


def events(evidence: Evidence) -> list[Event]:
    """Gives what happened, first to last."""
    found = sorted(_all(evidence), key=lambda each: (each.at, _ORDER.index(each.kind)))
    told = []
    before: datetime | None = None
    for each in found:
        told.append(replace(each, text=f"{_when(each.at, before)}: {each.text}"))
        before = each.at
    return told


def answers(evidence: Evidence) -> Answers:
    """Gives the four answers."""
    happened = dict.fromkeys(_event_name(each) for each in evidence.asked)
    ways = dict.fromkeys(way(each) for each in evidence.asked)
    return Answers(
        events=list(happened),
        code_paths=list(ways),
        enqueued=len(evidence.enqueued),
        accepts=sum(len(evidence.accepts_of(each)) for each in evidence.enqueued),
    )


def way(asked: Asked) -> str:
    """Gives source and code path of a trigger: web_request shop.reset."""
    return f"{asked.source} {asked.code_path or '(code path not given)'}"


def _event_name(asked: Asked) -> str:
    name = asked.event or asked.message_type or "(event not given)"
    return f"{name} ({words.named(asked.entities)})" if asked.entities else name


def _when(at: datetime, before: datetime | None) -> str:
    if before is None:
        return f"{words.day(at)}, {words.clock(at)} UTC"
    dated = words.clock(at) if at.date() == before.date() else f"{words.day(at)}, {words.clock(at)}"
    return f"{dated}, {words.gap(at - before)} later" if at > before else f"{dated}, at the same moment"


def _all(evidence: Evidence) -> Iterator[Event]:
    yield from map(_came, evidence.came)
    numbers = {each.id: each for each in evidence.came}
    yield from (_redelivered(each, numbers.get(each.event_number)) for each in evidence.redelivered)
    yield from map(_asked, evidence.asked)
    for send in evidence.enqueued:
        yield _enqueued(send)
        attempts = evidence.attempts_of(send.id)
        for attempt in attempts:
            yield from _tried(attempt, send)
        yield from _ended(send, attempts)
    yield from map(_decided, evidence.decided)
    yield from map(_reported, evidence.reported)


def _came(came: Came) -> Event:
    kind = f" of the type {came.event_type}" if came.event_type else ""
    given = "no id of its own" if came.id_source == "hash" else f"the id {came.event_id}"
    return Event(
        at=came.at,
        kind="webhook",
        text=f"a webhook event{kind} came to the endpoint {came.endpoint}, with {given}"
        f" (request {came.request_id}, body {came.body_sha256[:12]}).",
        ids={"inbox_event": came.id, "event_id": came.event_id, "request_id": came.request_id,
             "correlation_id": came.correlation_id},
    )  # fmt: skip


def _redelivered(again: Redelivered, first: Came | None) -> Event:
    body = "the same body" if again.is_same_body else "another body"
    which = f"{first.event_id} was delivered again to {first.endpoint}" if first else "was delivered again"
    return Event(
        at=again.at,
        kind="redelivery",
        text=f"the webhook event {which}, with {body} (request {again.request_id}). It was known, and asked for"
        " nothing more.",
        ids={"inbox_event": again.event_number, "redelivery": again.id, "request_id": again.request_id},
    )


def _asked(asked: Asked) -> Event:
    about = f", about {_event_name(asked)}," if asked.event or asked.entities else ""
    path = f" from {asked.code_path}" if asked.code_path else ""
    if asked.campaign_id is not None:
        text = f"{words.SOURCES[asked.source]}{path} started campaign {asked.campaign_id}."
    else:
        made = f"message {asked.send_id}" if asked.send_id else "no message"
        template = f" by the template {asked.template}" if asked.template else ""
        odd = f" It differs in {words.listed(asked.differs)}." if asked.differs else ""
        odd += " The key looks random." if "key_looks_random" in asked.warnings else ""
        text = (
            f"{words.SOURCES[asked.source]}{path} asked{about} for a message of the type"
            f" {asked.message_type}{template} under the key {asked.dedupe_key}; {words.DECISIONS[asked.decision]}"
            f" ({made}; {_traces(asked)}).{odd}"
        )
    return Event(
        at=asked.at,
        kind="trigger",
        text=text,
        ids=_known(trigger=asked.id, send=asked.send_id, campaign=asked.campaign_id, dedupe_key=asked.dedupe_key,
                   request_id=asked.request_id, correlation_id=asked.correlation_id),
    )  # fmt: skip


def _traces(asked: Asked) -> str:
    request = f"request {asked.request_id}, " if asked.request_id else ""
    return f"{request}correlation id {asked.correlation_id}"


def _enqueued(send: Enqueued) -> Event:
    of_campaign = f" of the campaign {send.campaign_name}" if send.campaign_id else ""
    return Event(
        at=send.at,
        kind="enqueued",
        text=f"message {send.id}{of_campaign} was enqueued to {send.email}: “{send.subject}”, Message-ID"
        f" {send.message_id}.",
        ids=_known(send=send.id, campaign=send.campaign_id, message_id=send.message_id, dedupe_key=send.dedupe_key,
                   provider_id=send.provider_id, correlation_id=send.correlation_id),
    )  # fmt: skip


def _tried(attempt: Tried, send: Enqueued) -> Iterable[Event]:
    ids = _known(send=send.id, attempt=attempt.attempt_no, worker=attempt.worker_id, message_id=send.message_id)
    which = f"attempt {attempt.attempt_no} of message {send.id}"
    if attempt.handed_over_at is not None:
        text = f"{which} was handed over to {attempt.provider} by worker {attempt.worker_id}."
        yield Event(at=attempt.handed_over_at, kind="handed_over", text=text, ids=ids)
    said = f": {attempt.reply}" if attempt.reply else "."
    if attempt.handed_over_at is None:
        yield Event(
            at=attempt.ended_at,
            kind="answer",
            text=f"{which} ended before its hand-over, with worker {attempt.worker_id}: {attempt.provider}"
            f" {words.OUTCOMES[attempt.outcome]}{said}",
            ids=ids,
        )
        return
    took = words.gap(attempt.ended_at - attempt.handed_over_at)
    what = words.OUTCOMES[attempt.outcome]
    provider_id = send.provider_id if attempt.outcome == "accepted" else ""
    known_as = f" (its id there: {provider_id})" if provider_id else ""
    yield Event(
        at=attempt.ended_at,
        kind="answer",
        text=f"{attempt.provider} {what}, {took} after the hand-over of {which}{known_as}{said}",
        ids=ids | _known(provider_id=provider_id),
    )


def _ended(send: Enqueued, attempts: Sequence[Tried]) -> Iterable[Event]:
    """Tells the state of a send that its attempts do not tell."""
    if send.status == "sent" or (send.status in ("failed", "in_doubt") and attempts):
        return
    at = send.finished_at or max((each.ended_at for each in attempts), default=send.at)
    why = f": {send.reply}" if send.reply else ""
    lost = (
        f" Its worker was lost {words.times(send.interrupted_count)}, before a hand-over."
        if send.interrupted_count
        else ""
    )
    yield Event(
        at=at,
        kind="state",
        text=f"message {send.id} {words.ENDS[send.status]}{why}.{lost}",
        ids={"send": send.id},
    )


def _decided(decided: Decided) -> Event:
    return Event(
        at=decided.at,
        kind="decision",
        text=f"{decided.by_name} {words.CHANGES[decided.change]} (message {decided.send_id}), because:"
        f" {decided.reason}",
        ids={"send": decided.send_id, "frozen_set": decided.set_id},
    )


def _reported(reported: Reported) -> Event:
    said = f": {reported.words}" if reported.words else "."
    return Event(
        at=reported.at,
        kind="report",
        text=f"{reported.provider} reported that message {reported.send_id} {words.FACTS[reported.fact]}"
        f" (its id there: {reported.provider_id}){said}",
        ids=_known(send=reported.send_id, report=reported.id, provider_id=reported.provider_id),
    )


def _known(**ids: Any) -> dict[str, Any]:
    return {name: value for name, value in ids.items() if value not in (None, "")}
