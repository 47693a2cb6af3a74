"""One stored report of a provider: which facts it tells, each handed on to the ledger."""

from sqlalchemy.orm import Session

from console.errors import InvalidInput
from console.inbox import paths
from console.inbox.queue_store import Outcome, Taken
from console.inbox.report_kinds import REPORTS
from console.providers import store as provider_store
from console.sends import outcome

NOTHING = "It says nothing of a message."
STRANGE = "It is about no message that went out from here."


def read_event(session: Session, taken: Taken) -> Outcome:
    """Hands on what a report tells, in the caller's transaction; gives what became of it.

    Read once more it changes nothing: each fact is known by its report's id and its place in it.
    """
    row = provider_store.provider_by_endpoint(session, taken.account_id, taken.endpoint_id)
    if row is None or row.kind not in REPORTS:
        return Outcome(status="failed", reason="No provider belongs to this address any more.")
    if taken.body is None:
        return Outcome(status="failed", reason="Its body is forgotten, because it is older than bodies are kept.")
    try:
        body = paths.parse_body(taken.body)
    except InvalidInput as error:
        return Outcome(status="failed", reason=str(error))
    send_id = None
    told = REPORTS[row.kind].read(body)
    for place, each in enumerate(told):
        noted = outcome.report(
            session,
            taken.account_id,
            each,
            provider=row.name,
            event_key=f"{taken.event_id}#{place}",
            inbox_event_id=taken.id,
        )
        send_id = noted.send_id or send_id
    if not told:
        return Outcome(status="done", reason=NOTHING)
    return Outcome(status="done", send_id=send_id, reason="" if send_id else STRANGE)
