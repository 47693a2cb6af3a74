"""Whether the promise held: the ledger's rows against what the mailbox counted. Pure.

The two know nothing of one another: the mailbox writes down what arrives, the ledger what it believes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

STATES = ("queued", "sending", "sent", "failed", "dead", "in_doubt", "suppressed", "cancelled", "expired")
# States in which nothing has been handed over, or what was handed over has been refused.
UNSENT = frozenset({"queued", "failed", "suppressed", "cancelled", "expired", "dead"})
_SHOWN = 3


class Row(NamedTuple):
    """One send of the ledger."""

    email_lower: str
    status: str
    message_id: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All figures of a run; `broken` has a sentence for each promise that was broken.

    accepted, duplicates and lost are None without a mailbox that counts. `accepted` counts messages, duplicates too:
    acceptances of an address beyond its first.
    """

    recipients: int
    accepted: int | None
    duplicates: int | None
    lost: int | None
    states: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    @property
    def held(self) -> bool:
        return not self.broken


def judge(
    rows: Sequence[Row],
    *,
    expected: int,
    counts: Mapping[str, int],
    tally: Mapping[tuple[str, str], int] | None,
    in_doubt_limit: int,
) -> Verdict:
    """Holds the ledger of a finished campaign against the mailbox.

    Takes: expected, how many addresses the campaign was to reach or to account for; counts, the campaign's counters by
           state; tally, how often each (address, Message-ID) was accepted, None when nobody counted;
           in_doubt_limit, how many rows the run may leave in doubt: kills x connections.
    """
    states = dict.fromkeys(STATES, 0) | Counter(row.status for row in rows)
    broken = []
    if len(rows) != expected:
        broken.append(f"the ledger has {len(rows)} rows for {expected} addresses")
    unfinished = states["queued"] + states["sending"]
    if unfinished:
        broken.append(f"{unfinished} messages are still queued or sending")
    if states["in_doubt"] > in_doubt_limit:
        broken.append(f"{states['in_doubt']} messages are in doubt, at most {in_doubt_limit} may be")
    wrong = [state for state in STATES if counts.get(state, 0) != states[state]]
    if wrong:
        figures = ", ".join(f"{state} {counts.get(state, 0)} instead of {states[state]}" for state in wrong)
        broken.append(f"the counters differ from the rows: {figures}")
    accepted = duplicates = lost = None
    if tally is not None:
        accepted = sum(tally.values())
        duplicates, lost, sentences = _compare(rows, tally)
        broken += sentences
    return Verdict(
        recipients=len(rows), accepted=accepted, duplicates=duplicates, lost=lost, states=states, broken=broken
    )


def _compare(rows: Sequence[Row], tally: Mapping[tuple[str, str], int]) -> tuple[int, int, list[str]]:
    times: Counter[str] = Counter()
    for (address, _), count in tally.items():
        times[address] += count
    twice = [address for address, count in times.items() if count > 1]
    lost = [row.email_lower for row in rows if row.status == "sent" and (row.email_lower, row.message_id) not in tally]
    by_address = {row.email_lower: row for row in rows}
    strangers = [address for address in times if address not in by_address]
    untrue = [row.email_lower for row in rows if row.status in UNSENT and times[row.email_lower]]
    sentences = [
        f"{_some(addresses)} {what}"
        for addresses, what in (
            (twice, "got the message more than once"),
            (lost, "got nothing, though the ledger says sent"),
            (strangers, "got the message, but are not in the ledger"),
            (untrue, "got the message, though the ledger says that it was not sent"),
        )
        if addresses
    ]
    return sum(times[address] - 1 for address in twice), len(lost), sentences


def _some(addresses: Iterable[str]) -> str:
    all_of_them = sorted(addresses)
    shown = ", ".join(all_of_them[:_SHOWN])
    more = len(all_of_them) - _SHOWN
    return f"{len(all_of_them)} addresses ({shown}{f' and {more} more' if more > 0 else ''})"
