"""The states of a send, its attempts' outcomes, its error classes and what people may decide, in words. Pure."""

from typing import NamedTuple

from console.sends.states import Change, State


class Word(NamedTuple):
    """How a state is shown: a label, a mark to be read without colour, a tone of the style sheet, a sentence."""

    label: str
    mark: str
    tone: str
    meaning: str


WORDS: dict[str, Word] = {
    State.QUEUED: Word("Waiting", "◔", "wait", "Waits for its turn, or for its next attempt."),
    State.SENDING: Word("Sending", "▶", "busy", "A worker has taken it and is handing it over now."),
    State.SENT: Word("Sent", "✓", "good", "The mail server accepted it and is responsible for it now."),
    State.FAILED: Word("Failed", "✕", "bad", "Refused for good, so it is not tried again. The reply says why."),
    State.IN_DOUBT: Word(
        "In doubt",
        "?",
        "bad",
        "It was handed over, but no answer came back: the mail server may have accepted it or not. It is not sent"
        " again by itself, because that could send it twice. Look into the mail server's log to find out.",
    ),
    State.DEAD: Word("Dead letter", "†", "bad", "It could not be delivered in the attempts and the time allowed."),
    State.SUPPRESSED: Word("Suppressed", "⊘", "quiet", "The person opted out or is blocked, so it was not sent."),
    State.CANCELLED: Word("Cancelled", "✕", "quiet", "Stopped before it was sent."),
    State.EXPIRED: Word("Expired", "⌛", "quiet", "It became too late for it to be of use, so it was not sent."),
}

OUTCOMES: dict[str, str] = {
    "accepted": "Accepted",
    "deferred": "Put off: to be tried again",
    "refused": "Refused for good",
    "no_answer": "No answer after the hand-over: in doubt",
}


class ChangeWord(NamedTuple):
    """How something that a person may decide is shown: its button, what it does, what its page asks, what it did."""

    label: str
    meaning: str
    tone: str
    done: str


CHANGES: dict[str, ChangeWord] = {
    Change.REVIVE: ChangeWord(
        "Send again",
        "Each goes back into the queue with its attempts and its time counted anew. It is the same message, with the"
        " same Message-ID and Date. Who has opted out meanwhile does not get it.",
        "primary",
        "put back into the queue",
    ),
    Change.SETTLE_SENT: ChangeWord(
        "Settle as sent",
        "Each is recorded as sent. Nothing is sent by this. Choose it when the mail server's log, or the recipient,"
        " says that the message was accepted.",
        "primary",
        "settled as sent",
    ),
    Change.SETTLE_RESEND: ChangeWord(
        "Send again",
        "Each goes back into the queue and is handed over again. The mail server may have accepted it the first time:"
        " then the person gets it twice, with the same Message-ID.",
        "danger",
        "put back into the queue",
    ),
    Change.SETTLE_FAILED: ChangeWord(
        "Give up",
        "Each is recorded as failed and is not sent again. The person may have got it all the same.",
        "danger",
        "given up",
    ),
}

PHASES: dict[str, str] = {
    "connect": "while connecting",
    "mail": "at the sender's address",
    "rcpt": "at the recipient's address",
    "data": "before the text",
    "body": "while sending the text",
    "end": "after the whole message",
    "compose": "while composing it here",
    "recovery": "found by recovery after its worker was lost",
}

_CLASSES = {
    "": "Reason unknown",
    "unknown": "Reason unknown",
    "too-old": "Too old: its time ran out",
    "worker-died": "Its workers died with it, time and again",
}


def class_words(error_class: str) -> str:
    """Gives an error class in words: 451-4.7.1-rcpt is "451 4.7.1 at the recipient's address"."""
    if error_class in _CLASSES:
        return _CLASSES[error_class]
    reply, _, phase = error_class.rpartition("-")
    return f"{reply.replace('no-answer', 'No answer').replace('-', ' ')} {PHASES.get(phase, phase)}"


LANE_WORDS: dict[str, str] = {
    "urgent": "codes and resets",
    "normal": "receipts and invoices",
    "bulk": "whatever has time",
}

MODES: dict[str, str] = {
    "enforce": "enforce: a repeat makes no second message",
    "observe": "observe: a repeat goes out, and is noted below",
}

CONFLICTS: dict[str, str] = {
    "refuse": "refuse: an error that names what differs",
    "first": "first: answer with the first message",
}

DOUBTS: dict[str, str] = {
    "hold": "hold: it stays in doubt, for a person",
    "resend": "resend: hand it over again, perhaps twice",
}

DECISIONS: dict[str, str] = {
    "accepted": "Accepted",
    "duplicate_suppressed": "Repeat: no second message",
    "duplicate_observed": "Repeat that was sent: it would have been stopped",
    "suppressed": "Stopped by an opt-out",
    "refused": "Refused: the key is taken by other content",
}

ODDITIES: dict[str, str] = {
    "key_looks_random": "The key looks random: the same message has come with another one.",
    "key_too_broad": "The key is too broad: it came before with other parameters.",
}

# What a provider answered that was asked for a message.
FOUND: dict[str, str] = {"found": "has it", "absent": "has no such message", "unknown": "could not tell"}
