"""What a verdict is: a cause, whether the records decide, and the sentences that prove it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Verdict:
    """`cause` is one of words.CAUSES; `evidence` are sentences."""

    cause: str
    decided: bool
    evidence: Sequence[str]

    def with_evidence(self, *more: str) -> Self:
        """Gives the verdict with further sentences."""
        return replace(self, evidence=(*self.evidence, *more))


def undecided(*evidence: str) -> Verdict:
    """Gives the verdict that the records do not decide, and what they do say."""
    return Verdict("undecided", False, evidence)
