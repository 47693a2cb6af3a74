"""The states of a send, and the outcomes of its attempts, in words for people. Pure."""

from typing import NamedTuple

from console.sends.states import State


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
