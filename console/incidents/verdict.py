"""Which of the known causes the records prove, with the evidence for it; or that they do not decide. Pure.

A copy is a hand-over that a provider accepted, or may have accepted. Of all kinds of messages to the recipient in the
window, the verdict is about the one with most copies.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from console.incidents import pairs, words
from console.incidents.evidence import Asked, Enqueued, Evidence, Tried
from console.incidents.findings import Verdict, undecided

# A state in which a send can never have reached a provider, or did so in vain.
_REFUSING = frozenset({"failed", "dead", "suppressed", "cancelled", "expired"})


def judge(evidence: Evidence) -> Verdict:
    """Gives the verdict."""
    sends = _kind_with_most_copies(evidence)
    accept_count = sum(len(evidence.accepts_of(each)) for each in sends)
    doubt_count = sum(len(evidence.doubts_of(each)) for each in sends)
    if accept_count == 0 and doubt_count:
        return _only_in_doubt(evidence, sends)
    if accept_count + doubt_count > 1:
        return _several(evidence, sends)
    broad = _too_broad(evidence)
    if broad is not None:
        return broad
    return _one(evidence, sends) if accept_count else _none(evidence)


def _kind_with_most_copies(evidence: Evidence) -> list[Enqueued]:
    """Gives the sends of which there are copies, first to last, of the kind that has most of them."""
    kinds: dict[str, list[Enqueued]] = defaultdict(list)
    for send in evidence.enqueued:
        if evidence.accepts_of(send) or evidence.doubts_of(send):
            kinds[send.message_type].append(send)
    most = max(kinds.values(), key=lambda sends: sum(_copy_count(evidence, each) for each in sends), default=[])
    return sorted(most, key=lambda each: (each.at, each.id))


def _copy_count(evidence: Evidence, send: Enqueued) -> int:
    return len(evidence.accepts_of(send)) + len(evidence.doubts_of(send))


def _several(evidence: Evidence, sends: Sequence[Enqueued]) -> Verdict:
    """Judges more than one copy: made by several messages, or by several hand-overs of one."""
    found = [pairs.compare(evidence, first, second) for first, second in pairwise(sends)]
    found += [again for each in sends if (again := _handed_over_again(evidence, each)) is not None]
    best = next((each for each in found if each.decided), found[0])
    return best.with_evidence(*(_accepted(evidence, each) for each in sends))


def _accepted(evidence: Evidence, send: Enqueued) -> str:
    accepts, doubts = evidence.accepts_of(send), evidence.doubts_of(send)
    sure = f"accepted {words.times(len(accepts))}" + (
        f" ({words.listed(map(words.clock, accepts))})" if accepts else ""
    )
    perhaps = f", and handed over {words.times(len(doubts))} without an answer" if doubts else ""
    return f"Message {send.id} was {sure}{perhaps}."


def _handed_over_again(evidence: Evidence, send: Enqueued) -> Verdict | None:
    """Says why one message was handed over more than once; None when it was not."""
    copies = [each for each in evidence.attempts_of(send.id) if each.may_have_arrived]
    for first, second in pairwise(copies):
        return _between(evidence, send, first, second)
    return None


def _between(evidence: Evidence, send: Enqueued, first: Tried, second: Tried) -> Verdict:
    began = second.handed_over_at or second.ended_at
    facts = [
        f"Attempt {first.attempt_no} of message {send.id} ended at {words.clock(first.ended_at)}: {first.provider}"
        f" {words.OUTCOMES[first.outcome]}.",
        f"Attempt {second.attempt_no} of the same message was handed over at {words.clock(began)}.",
    ]
    for each in evidence.decided:
        is_again = each.change in ("revive", "settle_resend")
        if each.send_id == send.id and is_again and first.ended_at <= each.at <= began:
            said = f"{each.by_name} {words.CHANGES[each.change]} at {words.clock(each.at)}, because: {each.reason}"
            return Verdict("operator_resend", True, (said, *facts))
    if first.outcome == "accepted":
        return Verdict("retry_after_accept", True, tuple(facts))
    if send.policy == "resend":
        policy = f"Messages of the type {send.message_type} that are in doubt are handed over again by themselves."
        return Verdict("in_doubt_resend", True, (*facts, policy))
    return undecided("It was handed over again, and no row says who or what had that done.", *facts)


def _only_in_doubt(evidence: Evidence, sends: Sequence[Enqueued]) -> Verdict:
    facts = [
        f"Attempt {each.attempt_no} of message {send.id} was handed over to {each.provider} at"
        f" {words.clock(each.handed_over_at or each.ended_at)}, and no answer came: {each.reply}"
        for send in sends
        for each in evidence.doubts_of(send)
    ]
    return undecided("No provider is known to have accepted it, and none is known not to have.", *facts)


def _too_broad(evidence: Evidence) -> Verdict | None:
    """Says that a message was held back as a repeat which was another message."""
    for each in evidence.asked:
        if each.differs and each.decision in ("refused", "duplicate_suppressed"):
            return Verdict(
                "key_too_broad",
                True,
                (
                    f"At {words.clock(each.at)} a message under the key {each.dedupe_key} was held back, because"
                    f" message {each.send_id or '(number not on record)'} holds that key; but it differs from it in"
                    f" {words.listed(each.differs)}.",
                    "What differs should stand in the key.",
                ),
            )
    return None


def _one(evidence: Evidence, sends: Sequence[Enqueued]) -> Verdict:
    accepted = [each for each in evidence.enqueued if evidence.accepts_of(each)]
    facts = [_accepted(evidence, each) for each in accepted or sends]
    if len(accepted) > 1:
        facts.append(f"These are {len(accepted)} messages of different types.")
    held = [each for each in evidence.asked if each.decision == "duplicate_suppressed"]
    facts += [_held_back(each) for each in held]
    facts.append(
        "A second copy came from elsewhere: a forwarding or a second address of the same person, the provider, or an"
        " application that does not send through here."
    )
    return Verdict("one_accept", True, tuple(facts))


def _held_back(asked: Asked) -> str:
    return (
        f"A repeat was held back at {words.clock(asked.at)}, under the key {asked.dedupe_key} ({asked.source}"
        f" {asked.code_path}, correlation id {asked.correlation_id})."
    )


def _none(evidence: Evidence) -> Verdict:
    waiting = [each for each in evidence.enqueued if each.status not in _REFUSING]
    facts = [f"Message {each.id} {words.ENDS.get(each.status, each.status)}: {_why(evidence, each)}"
             for each in evidence.enqueued]  # fmt: skip
    if not evidence.enqueued:
        facts = [
            "No message to this recipient was enqueued in this window.",
            f"It was asked for {words.times(len(evidence.asked))}.",
        ]
    if any(each.status == "sent" for each in waiting):
        return undecided("It stands as sent, but no row says that a provider accepted it.", *facts)
    return Verdict("never_accepted", True, tuple(facts))


def _why(evidence: Evidence, send: Enqueued) -> str:
    attempts = evidence.attempts_of(send.id)
    said = send.reply or (attempts[-1].reply if attempts else "")
    count = words.plural(len(attempts), "attempt")
    return f"{said} ({count})." if said else f"no reply is on record ({count})."
