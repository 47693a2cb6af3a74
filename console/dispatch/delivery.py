"""One claimed row on its way through a connection."""

from console.dispatch.jobs import Line
from console.dispatch.recorder import Claimed
from console.providers.base import Answer


class Delivery:
    """The row, the campaign it came from, and how far it is."""

    __slots__ = ("claimed", "early_answer", "is_second_try", "line", "not_before", "was_marked")

    def __init__(self, claimed: Claimed, line: Line, not_before: float):
        self.claimed = claimed
        self.line = line
        self.not_before = not_before
        self.is_second_try = False
        self.was_marked = False
        self.early_answer: Answer | None = None  # came while the mark was being written
