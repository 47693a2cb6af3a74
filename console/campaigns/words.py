"""The states of a campaign in words for people. Pure."""

from typing import NamedTuple

from console.campaigns.states import State


class Word(NamedTuple):
    """How a state is shown: a label, a mark to be read without colour, a tone of the style sheet, a sentence."""

    label: str
    mark: str
    tone: str
    meaning: str


WORDS: dict[str, Word] = {
    State.DRAFT: Word("Draft", "✎", "quiet", "It is being written. Submit it when it is ready to be approved."),
    State.SUBMITTED: Word("Waits for approval", "◔", "wait", "Somebody other than its author must approve it."),
    State.APPROVED: Word("Scheduled", "◷", "wait", "It is approved and starts by itself at its time."),
    State.SENDING: Word("Sending", "▶", "busy", "Its messages are being sent."),
    State.PAUSED: Word("Paused", "‖", "wait", "No further message is sent until somebody resumes it."),
    State.SENT: Word("Sent", "✓", "good", "Nothing is waiting any more; see below what became of each message."),
    State.CANCELLED: Word("Cancelled", "✕", "quiet", "It was stopped for good. What had been sent stays sent."),
}
