"""One event and one rule: what mail it asks for, asked for through the one door, or tried out without a trace."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.errors import Conflict, InvalidInput, SendonceError
from console.inbox import event_store, mapping, paths, queue_store, rule_store, rules
from console.inbox.event_store import EventDetail
from console.inbox.mapping import Source
from console.inbox.queue_store import Outcome, Taken
from console.inbox.rule_store import RuleRow
from console.sends import intake, type_store

TRIGGER_SOURCE = "webhook"
MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a rule would do with an event; `problem`: why it would fail, and then `asked` may be missing."""

    event: EventDetail
    asked: intake.Request | None = None
    receipt: intake.Receipt | None = None
    problem: str = ""


def read_event(session: Session, taken: Taken) -> Outcome:
    """Does what the rule for the event says, in the caller's transaction; gives what became of it.

    A refusal is the event's failure, with its reason; what else goes wrong is raised.
    """
    if taken.send_id is not None:
        return _as_before(taken)
    rule = rule_store.rule_for(session, taken.account_id, taken.endpoint_id, taken.event_type)
    if rule is None:
        return Outcome(status="no_rule", reason=_no_rule(taken.event_type))
    try:
        request = _request(
            session,
            taken.account_id,
            rule,
            body=taken.body,
            source=Source(endpoint=taken.endpoint, event_id=taken.event_id, event_type=taken.event_type),
            request_id=taken.request_id,
            correlation_id=taken.correlation_id,
        )
        receipt = intake.accept(session, taken.account_id, request)
    except SendonceError as error:
        return failed(str(error), rule=rule)
    return Outcome(
        status="done", rule_id=rule.id, rule_version=rule.version, send_id=receipt.id, decision=receipt.decision
    )


def failed(reason: str, *, rule: RuleRow | None = None) -> Outcome:
    """Gives the outcome of an event that failed."""
    return Outcome(
        status="failed",
        reason=reason,
        rule_id=rule.id if rule else None,
        rule_version=rule.version if rule else None,
    )


def try_out(session: Session, account_id: int, rule_id: int, *, user_id: int | None, event_id: int) -> Trial:
    """Gives what the rule would do with a stored event, and sends nothing. A success lets this version be switched on.

    Raises: Forbidden; NotFound; Conflict when the rule is changed at the same moment.
    """
    rules.require_admin(session, account_id, user_id)
    rule = rule_store.show_rule(session, account_id, rule_id)
    event = event_store.show_event(session, account_id, event_id)
    request = None
    try:
        _check_fits(rule, event)
        row = event.row
        request = _request(
            session,
            account_id,
            rule,
            body=event.body,
            source=Source(endpoint=row.endpoint, event_id=row.event_id, event_type=row.event_type),
            request_id=row.request_id,
            correlation_id=row.correlation_id,
        )
        receipt = intake.check(session, account_id, request)
    except SendonceError as error:
        return Trial(event=event, asked=request, problem=str(error))
    if not rule_store.note_trial(session, account_id, rule_id, version=rule.version, event_id=event_id):
        raise Conflict(f"The rule {rule.name} was changed at the same moment. Try it out again.")
    return Trial(event=event, asked=request, receipt=receipt)


def replay(session: Session, account_id: int, *, user_id: int | None, event_ids: list[int]) -> list[int]:
    """Queues events to be read once more, by the rules that are on then; gives the numbers of those that it queued.

    An event that made its message makes no second one.
    Raises: InvalidInput when none or too many are chosen; Forbidden.
    """
    if user_id is not None:
        accounts.acting_user(session, account_id, user_id, "operator", "support", doing="read events once more")
    if not event_ids or len(event_ids) > MOST_AT_ONCE:
        raise InvalidInput(f"Choose 1 to {MOST_AT_ONCE:,} events.", field="event_id")
    queued = queue_store.put_back(session, account_id, event_ids)
    for event_id in queued:
        rules.record(session, account_id, user_id, "inbox.event.replay", event_id)
    return queued


def _check_fits(rule: RuleRow, event: EventDetail) -> None:
    if event.row.endpoint_id != rule.endpoint_id:
        raise InvalidInput(
            f"Event {event.row.id} came to the endpoint {event.row.endpoint}; this rule is for {rule.endpoint_name}."
        )
    if not rule.is_for(event.row.event_type):
        raise InvalidInput(
            f"Event {event.row.id} is of the type {event.row.event_type or '(none)'};"
            f" this rule is for {rule.event_type}."
        )


def _request(
    session: Session,
    account_id: int,
    rule: RuleRow,
    *,
    body: bytes | None,
    source: Source,
    request_id: str,
    correlation_id: str,
) -> intake.Request:
    """Gives the request that the event makes by the rule.

    Raises: InvalidInput, or NotFound for its message type.
    """
    if body is None:
        raise InvalidInput("The event's body is forgotten, because it is older than bodies are kept.")
    asked = mapping.map_event(paths.parse_body(body), rule.map, source)
    has_pattern = type_store.show(session, account_id, rule.message_type).key_pattern is not None
    # A type's own pattern comes before the event's id: the same event by another way meets this one then.
    default = None if has_pattern else mapping.default_key(source)
    return intake.Request(
        to=asked.to,
        message_type=rule.message_type,
        params=asked.params,
        dedupe_key=asked.dedupe_key or default,
        correlation_id=correlation_id,
        request_id=request_id,
        trigger_source=TRIGGER_SOURCE,
        code_path=code_path(source.endpoint, rule.name),
        event=source.event_type,
        entities=asked.entities,
    )


def code_path(endpoint: str, rule: str) -> str:
    """Gives the name under which a rule's sends are found."""
    return f"inbox:{endpoint}/{rule}"


def _as_before(taken: Taken) -> Outcome:
    """Gives what the event came to before: it makes one message at most.

    Its key alone would not keep that: a type may only observe, a window may have ended, the rule may make another key.
    """
    return Outcome(
        status="done",
        reason=f"It was read again, and made nothing: it had made send {taken.send_id}.",
        rule_id=taken.rule_id,
        rule_version=taken.rule_version,
        send_id=taken.send_id,
        decision=taken.decision,
    )


def _no_rule(event_type: str) -> str:
    if not event_type:
        return "No type was found in it, and no rule for * is on. See where the endpoint looks for the type."
    return f"No rule that is on is for events of the type {event_type}."
