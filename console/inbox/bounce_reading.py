"""One stored mail of a bounce mailbox: which facts it tells, each handed on to the ledger as a provider's report is."""

from dataclasses import replace

from sqlalchemy.orm import Session

from console.inbox.queue_store import Outcome, Taken
from console.inbox.report_reading import STRANGE
from console.providers import delivery_status
from console.providers.delivery_status import Told
from console.providers.names import tagged_send_id
from console.providers.reports import Bounce, Report
from console.sends import outcome

READER = "bounces"
# What stands for the provider in facts: one name, so that a mail that lies in two folders is one fact.
SOURCE = "bounce mailbox"
NO_REPORT = "It is no report of a mail server about a delivery."
NOTHING = "It says nothing that has become of a message."


def read_event(session: Session, taken: Taken) -> Outcome:
    """Hands on what a mail tells, in the caller's transaction; gives what became of it.

    Read once more it changes nothing: each fact is known by its mail's hash and its place in it.
    """
    if taken.body is None:
        return Outcome(status="failed", reason="Its text is forgotten, because it is older than bodies are kept.")
    told = delivery_status.read(taken.body)
    if not told:
        return Outcome(status="done", reason=NO_REPORT if told is None else NOTHING)
    send_id = None
    for place, each in enumerate(told):
        noted = outcome.report(
            session,
            taken.account_id,
            _matched(session, taken.account_id, each),
            provider=SOURCE,
            event_key=f"{taken.event_id}#{place}",
            inbox_event_id=taken.id,
        )
        send_id = noted.send_id or send_id
    return Outcome(status="done", send_id=send_id, reason="" if send_id else STRANGE)


def _matched(session: Session, account_id: int, told: Told) -> Report:
    """Gives the report with the tag of its message: its own, else that of the message whose headers it returns."""
    report = told.report
    # A tag that looks like ours and is not, is forged or another installation's: then nothing else is believed.
    if tagged_send_id(report.tag) is None:
        tag = outcome.tag_of_message(session, account_id, message_id=told.message_id, addresses=told.addresses)
        report = replace(report, tag=tag or report.tag)
    if report.bounce is not Bounce.HARD:
        return report
    send = outcome.send_of(session, account_id, report.tag)
    is_ours = send is not None and send.email_lower == report.email.lower()
    # The recipient had it forwarded, and the other address is gone: that says nothing of the recipient's own.
    return report if is_ours or send is None else replace(report, bounce=Bounce.OTHER)
