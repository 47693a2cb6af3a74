"""What people do with dead letters and messages in doubt: first a set is frozen and shown, then it is run, once.

What was shown is exactly what is touched: sends that came later are not in the set, and those that changed meanwhile
are skipped and named. The SQL is in settle_store.py.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.accounts import store as accounts_store
from console.errors import Conflict, InvalidInput, NotFound
from console.sends import settle_store
from console.sends.settle_store import Skipped
from console.sends.states import STEPS, Change, State
from console.sends.unsettled_store import Chosen
from console.sends.words import WORDS

# Sends in one set: so many are moved in about a second, in which nobody else can move their campaigns.
SET_ROWS = 10_000
REASON_CHARACTERS = 500

_MAY_SETTLE = ("operator",)

_ACTIONS = {
    Change.REVIVE: "dead_letters.retry",
    Change.SETTLE_SENT: "in_doubt.settle_as_sent",
    Change.SETTLE_RESEND: "in_doubt.send_again",
    Change.SETTLE_FAILED: "in_doubt.give_up",
}


@dataclass(frozen=True)
class Ran:
    """What running a set did."""

    set_id: int
    moved_count: int
    skipped: list[Skipped]


def freeze(
    session: Session,
    account_id: int,
    *,
    user_id: int,
    change: Change,
    chosen: Chosen | None = None,
    send_ids: Sequence[int] = (),
) -> int | None:
    """Fixes which sends a change is for. Nothing is moved yet.

    Takes:  chosen, for the first SET_ROWS of a whole list; else send_ids, of which those in another state are skipped
            when the set is run.
    Gives:  the number of the set; None when the list is empty.
    Raises: InvalidInput without numbers, or with too many; NotFound for those that the account has not; Forbidden.
    """
    accounts.acting_user(session, account_id, user_id, *_MAY_SETTLE, doing="settle messages")
    if chosen is not None and not settle_store.has_rows(session, account_id, chosen, beyond=0):
        return None
    set_id = settle_store.insert_set(session, account_id, change=change, shown_to=user_id)
    if chosen is None:
        row_count, has_more = _freeze_ids(session, account_id, set_id, send_ids), False
    else:
        row_count = settle_store.freeze_chosen(session, account_id, set_id, chosen=chosen, limit=SET_ROWS)
        has_more = settle_store.has_rows(session, account_id, chosen, beyond=SET_ROWS)
    settle_store.close_set(session, account_id, set_id, row_count=row_count, has_more=has_more)
    return set_id


def run(session: Session, account_id: int, set_id: int, *, user_id: int, reason: str) -> Ran:
    """Moves the sends of a set that are still as they were shown, once, and writes down who did it and why.

    Raises: InvalidInput without a reason; Conflict when the set was run already; NotFound, Forbidden.
    """
    accounts.acting_user(session, account_id, user_id, *_MAY_SETTLE, doing="settle messages")
    words = reason.strip()
    if not words or len(words) > REASON_CHARACTERS:
        raise InvalidInput(
            f"Say why, in up to {REASON_CHARACTERS} characters; it is kept with each message.", field="reason"
        )
    frozen = settle_store.show_set(session, account_id, set_id)
    if not settle_store.take_set(session, account_id, set_id, run_by=user_id, reason=words):
        _already_run(session, account_id, set_id)
    if STEPS[frozen.change].target is State.QUEUED:
        settle_store.lock_campaigns(session, account_id, set_id)
    moved_count = settle_store.move(session, account_id, set_id, change=frozen.change)
    labels = {state: word.label.lower() for state, word in WORDS.items()}
    skipped = settle_store.note_skipped(
        session, account_id, set_id, change=frozen.change, words=json.dumps(labels, ensure_ascii=False)
    )
    settle_store.note_moved(session, account_id, set_id, moved_count=moved_count)
    accounts_store.record(
        session,
        account_id,
        user_id=user_id,
        action=_ACTIONS[frozen.change],
        object_id=set_id,
        details={"reason": words, "moved": moved_count, "skipped": len(skipped)},
    )
    return Ran(set_id=set_id, moved_count=moved_count, skipped=skipped)


def _freeze_ids(session: Session, account_id: int, set_id: int, send_ids: Sequence[int]) -> int:
    wanted = set(send_ids)
    if not wanted:
        raise InvalidInput("Choose at least one message.", field="send_id")
    if len(wanted) > SET_ROWS:
        raise InvalidInput(f"Choose at most {SET_ROWS:,} messages at once.", field="send_id")
    missing = wanted - settle_store.freeze_ids(session, account_id, set_id, send_ids=sorted(wanted))
    if missing:
        numbers = ", ".join(map(str, sorted(missing)[:10]))
        raise NotFound(f"There is no send {numbers} in this account, so nothing was chosen. Check the number.")
    return len(wanted)


def _already_run(session: Session, account_id: int, set_id: int) -> NoReturn:
    # A look after the loss, only for the words.
    frozen = settle_store.show_set(session, account_id, set_id)
    raise Conflict(
        f"Set {set_id} was run already, by {frozen.run_by_name} at {frozen.ran_at:%Y-%m-%d %H:%M:%S %Z}:"
        f" {frozen.moved_count} of {frozen.row_count} messages moved. Nothing was done a second time."
    )
