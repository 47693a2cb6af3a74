"""One claimed row on its way through a connection."""

from collections.abc import Iterable
from itertools import islice

import structlog

from console.config import Settings
from console.content.source import Unfillable
from console.dispatch.outcomes import not_composed
from console.dispatch.queues import Composer
from console.dispatch.recorder import Claimed, Outcome
from console.providers.base import Answer, Message

log = structlog.get_logger(__name__)


def uncomposed(waiting: Iterable["Delivery"], *, among: int, most: int) -> list["Delivery"]:
    """Gives up to `most` of the first `among` whose messages are not made yet."""
    return list(islice((each for each in islice(waiting, among) if each.message is None), most))


class Delivery:
    """The row, what makes its message, the message, and how far it is."""

    __slots__ = (
        "claimed",
        "early_answer",
        "is_second_try",
        "line",
        "log_fields",
        "message",
        "not_before",
        "was_marked",
    )

    def __init__(self, claimed: Claimed, line: Composer, not_before: float):
        self.claimed = claimed
        self.line = line
        self.not_before = not_before
        self.message: Message | None = None  # once it is composed
        self.is_second_try = False
        self.log_fields = ""  # what stands in each of its log lines (call_log.py)
        self.was_marked = False
        self.early_answer: Answer | None = None  # came while the mark was being written

    def compose(self, settings: Settings) -> Outcome | None:
        """Makes the message, once; gives the outcome when it can't be made."""
        if self.message is not None:
            return None
        try:
            self.message = self.line.compose(self.claimed, settings)
        except Exception as error:  # whatever goes wrong with one message is that one's
            if not isinstance(error, Unfillable):
                log.error("message.not_composed", send_id=self.claimed.id, exc_info=error)
            return not_composed(self.claimed, str(error) or type(error).__name__)
        return None
