"""Cancelling one message that still waits, for the program that handed it in. Campaigns cancel theirs elsewhere."""

from sqlalchemy.orm import Session

from console.accounts import store as accounts_store
from console.errors import Conflict
from console.sends import listing_store, store
from console.sends.listing_store import ListedSend


class OtherState(Conflict):
    """The message does not wait any more, or is a campaign's; `send` is as it stands."""

    def __init__(self, message: str, *, send: ListedSend):
        super().__init__(message)
        self.send = send


def cancel(session: Session, account_id: int, send_id: int, *, api_key_id: int) -> ListedSend:
    """Cancels a queued message that is no campaign's; gives it as it stands then.

    Raises: NotFound; OtherState when it is in another state by now, or a campaign's.
    """
    is_cancelled = store.cancel_one(session, account_id, send_id, note=f"cancelled with the API key so_{api_key_id}_")
    found = listing_store.show(session, account_id, send_id)
    if not is_cancelled:
        raise OtherState(_why_not(found), send=found)
    accounts_store.record(
        session,
        account_id,
        user_id=None,
        action="send.cancel",
        object_id=send_id,
        details={"api_key_id": api_key_id},
    )
    return found


def _why_not(found: ListedSend) -> str:
    if found.campaign_id is not None:
        return f"The message {found.id} is of campaign {found.campaign_id}: pause or cancel the campaign on its page."
    return f"The message {found.id} is {found.status.replace('_', ' ')} by now; only a queued one can be cancelled."
