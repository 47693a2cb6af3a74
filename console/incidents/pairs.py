"""Why there are two messages and not one: what asked for the first, against what asked for the second. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from console.incidents import words
from console.incidents.evidence import Asked, Came, Enqueued, Evidence
from console.incidents.findings import Verdict, undecided
from console.incidents.timeline import way

JOBS = frozenset({"background_job", "cron"})
# The entity by which callers name the job that asks.
JOB_ID = "job_id"
# Names of what asked, not of what the message is about; the second is the inbox's (inbox/mapping.py).
_NOT_ABOUT = frozenset({JOB_ID, "webhook_event"})
# Equal bodies within this time come from two subscriptions: no sender repeats what was answered so soon. As the inbox
# counts them (inbox/queue_store.py).
DOUBLE_S = timedelta(seconds=10)
# Two requests so close are one person's two clicks, even when each made an entity of its own.
CLICKS = timedelta(seconds=10)
# And so close when they agree in an entity, such as the user.
RETRIES = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two messages with what asked for each."""

    first: Enqueued
    second: Enqueued
    asked: Asked
    again: Asked
    accepted_at: datetime | None  # the first one's accept

    @property
    def gap(self) -> timedelta:
        return self.again.at - self.asked.at

    @property
    def is_after_accept(self) -> bool:
        return self.accepted_at is not None and self.again.at >= self.accepted_at

    @property
    def is_one_request(self) -> bool:
        """Whether both say that they come from one request."""
        by_request = bool(self.asked.request_id) and self.asked.request_id == self.again.request_id
        return by_request or (
            bool(self.asked.correlation_id) and self.asked.correlation_id == self.again.correlation_id
        )

    @property
    def is_one_job(self) -> bool | None:
        """Whether both come from one job, by its id or else by the ids of their requests; None: nobody knows.

        A job has the correlation id of the request that enqueued it, so two jobs may share that.
        """
        ids = self.asked.entities.get(JOB_ID), self.again.entities.get(JOB_ID)
        if all(ids):
            return ids[0] == ids[1]
        if self.asked.request_id and self.asked.request_id == self.again.request_id:
            return True
        return None if self.asked.correlation_id == self.again.correlation_id else False

    @property
    def differing(self) -> list[str]:
        """Entities that both name, with different values."""
        return sorted(name for name in self._common if self.asked.entities[name] != self.again.entities[name])

    @property
    def agreeing(self) -> list[str]:
        """Entities that both name, with one value."""
        return sorted(name for name in self._common if self.asked.entities[name] == self.again.entities[name])

    @property
    def is_one_thing(self) -> bool:
        """Whether both are about the same: the same entities, or without any the same parameters."""
        if self.differing:
            return False
        return bool(self.agreeing) or self.first.params == self.second.params

    @property
    def has_one_key(self) -> bool:
        return self.asked.dedupe_key == self.again.dedupe_key

    @property
    def _common(self) -> set[str]:
        return (self.asked.entities.keys() & self.again.entities.keys()) - _NOT_ABOUT

    def facts(self) -> tuple[str, ...]:
        """Gives what stands on record about both requests."""
        keys = (
            f"Both have the key {self.asked.dedupe_key}."
            if self.has_one_key
            else f"The keys are {self.asked.dedupe_key} and {self.again.dedupe_key}."
        )
        about = (
            f"Both are about {words.named({n: self.asked.entities[n] for n in self.agreeing})}."
            if self.agreeing
            else ""
        )
        apart = (
            "They differ in "
            + words.listed(f"{n} ({self.asked.entities[n]} and {self.again.entities[n]})" for n in self.differing)
            + "."
            if self.differing
            else ""
        )
        told = (
            f"Message {self.first.id} was asked for by {_who(self.asked)} at {words.clock(self.asked.at)}.",
            f"Message {self.second.id} was asked for by {_who(self.again)}, {words.gap(self.gap)} later:"
            f" {words.DECISIONS[self.again.decision]}.",
            keys,
            about,
            apart,
        )
        return tuple(each for each in told if each)


def compare(evidence: Evidence, first: Enqueued, second: Enqueued) -> Verdict:
    """Gives why the second message was made beside the first."""
    asked, again = evidence.maker_of(first), evidence.maker_of(second)
    if asked is None or again is None:
        missing = first if asked is None else second
        return undecided(f"No row says who asked for message {missing.id}.")
    pair = _Pair(first, second, asked, again, min(evidence.accepts_of(first), default=None))
    if asked.campaign_id is not None or again.campaign_id is not None:
        return undecided(
            f"Message {first.id} is of {_of(first)} and message {second.id} of {_of(second)}: each sends one message to"
            " each recipient, and whether both should have is not on record."
        )
    if again.decision == "duplicate_observed" or not pair.has_one_key:
        return _by_way(evidence, pair)
    return Verdict(
        "key_too_narrow",
        True,
        (*pair.facts(), "The time for which the first message held the key had ended, so the key was free again."),
    )


def _by_way(evidence: Evidence, pair: _Pair) -> Verdict:
    came, came_again = evidence.webhook_of(pair.asked), evidence.webhook_of(pair.again)
    for asked, event in ((pair.asked, came), (pair.again, came_again)):
        if asked.code_path.startswith("inbox:") and event is None:
            return undecided(
                f"The webhook event that asked for message {asked.send_id} is not on record.", *pair.facts()
            )
    if came is not None and came_again is not None:
        return _two_webhooks(pair, came, came_again)
    if pair.asked.way != pair.again.way:
        return _two_ways(pair)
    if pair.asked.source in JOBS:
        return _two_jobs(pair)
    if pair.asked.source == "webhook":
        return _two_handlings(pair)
    return _two_requests(pair)


def _two_webhooks(pair: _Pair, came: Came, again: Came) -> Verdict:
    is_same_event = came.body_sha256 == again.body_sha256 or came.event_id == again.event_id
    bodies = "the same body" if came.body_sha256 == again.body_sha256 else "the same event id"
    facts = (
        f"The endpoint {came.endpoint} got the event {came.event_id} at {words.clock(came.at)}.",
        f"The endpoint {again.endpoint} got the event {again.event_id} {words.gap(again.at - came.at)} later, with"
        f" {bodies if is_same_event else 'another body'}.",
        *pair.facts(),
    )
    if came.endpoint != again.endpoint:
        if is_same_event:
            return Verdict("duplicate_subscription", True, facts)
        return _two_ways(pair) if pair.is_one_thing else undecided("The events differ.", *facts)
    if is_same_event and again.at - came.at <= DOUBLE_S:
        why = f"No sender repeats within {words.gap(DOUBLE_S)} what was answered at once: it is subscribed twice."
        return Verdict("duplicate_subscription", True, (*facts, why))
    if is_same_event or pair.is_one_thing:
        return Verdict(
            "webhook_redelivered", True, (*facts, "It came under another id, so it was taken for a new one.")
        )
    return undecided("The events are about different things.", *facts)


def _two_ways(pair: _Pair) -> Verdict:
    if pair.differing and not pair.agreeing:
        return undecided("Two code paths sent it, but about different things.", *pair.facts())
    return Verdict("two_code_paths", True, pair.facts())


def _two_jobs(pair: _Pair) -> Verdict:
    if pair.is_one_job:
        if pair.is_after_accept:
            return _after_accept(pair, "The same job ran again")
        why = f"Both come from one job ({_request(pair.asked)}), which ran a second time before the first was through."
        return Verdict("job_ran_twice", True, (*pair.facts(), why))
    if pair.is_one_job is None:
        why = f"Without the ids of their jobs (the entity {JOB_ID}) one job that ran twice looks like two jobs."
        return undecided(why, *pair.facts())
    if pair.differing and not pair.agreeing:
        return undecided("The jobs are about different things.", *pair.facts())
    why = f"There were two jobs: {_request(pair.asked)} and {_request(pair.again)}."
    return Verdict("job_enqueued_twice", True, (*pair.facts(), why))


def _two_handlings(pair: _Pair) -> Verdict:
    if pair.is_one_request or pair.is_one_thing:
        why = "The application handled the webhook both times as a new one."
        return Verdict("webhook_redelivered", True, (*pair.facts(), why))
    return undecided("The webhooks are about different things.", *pair.facts())


def _two_requests(pair: _Pair) -> Verdict:
    if pair.is_one_request:
        if pair.is_after_accept:
            return _after_accept(pair, "The same request was made again")
        why = f"Both come from one request ({_request(pair.asked)}): the client tried again."
        return Verdict("event_created_twice", True, (*pair.facts(), why))
    if pair.has_one_key:
        why = "Two requests were made for one event."
        return Verdict("event_created_twice", True, (*pair.facts(), why))
    if pair.is_one_thing:
        random = " The second one's key looks random." if "key_looks_random" in pair.again.warnings else ""
        why = f"Both ask for the same message, but their keys differ.{random}"
        return Verdict("key_too_narrow", True, (*pair.facts(), why))
    if pair.gap <= (RETRIES if pair.agreeing else CLICKS):
        why = f"Two requests within {words.gap(pair.gap)} each created the event, with a key of its own."
        return Verdict("event_created_twice", True, (*pair.facts(), why))
    return undecided("The requests are about different things.", *pair.facts())


def _after_accept(pair: _Pair, what: str) -> Verdict:
    assert pair.accepted_at is not None
    late = words.gap(pair.again.at - pair.accepted_at)
    why = f"{what} ({_request(pair.asked)}), {late} after the first message had been accepted."
    return Verdict("retry_after_accept", True, (*pair.facts(), why))


def _who(asked: Asked) -> str:
    return f"{way(asked)} ({_request(asked)})"


def _request(asked: Asked) -> str:
    if asked.entities.get(JOB_ID):
        return f"job {asked.entities[JOB_ID]}"
    return f"request {asked.request_id}" if asked.request_id else f"correlation id {asked.correlation_id}"


def _of(send: Enqueued) -> str:
    return f"the campaign {send.campaign_name}" if send.campaign_id else f"the type {send.message_type}"
