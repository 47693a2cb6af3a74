"""The life of a rule: written as a draft, tried out on a stored event, switched on and off. SQL is in rule_store.py."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.accounts import store as accounts_store
from console.errors import Conflict, InvalidInput
from console.inbox import endpoint_store, mapping, paths, rule_store
from console.inbox.arrival import LONGEST_TYPE
from console.inbox.rule_store import RuleRow
from console.inbox.service import check_name

_PAIR = re.compile(r"\s*([^=\s]+)\s*=\s*(\S.*?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What somebody writes; params and entities by name, each a JSON path."""

    name: str
    event_type: str
    message_type: str
    recipient_path: str
    params: Mapping[str, str] = field(default_factory=dict)
    dedupe_pattern: str = ""
    entities: Mapping[str, str] = field(default_factory=dict)


def pairs(text: str, *, field: str) -> dict[str, str]:
    """Gives names and paths out of lines such as `order_id = $.data.order.id`.

    Raises: InvalidInput naming the field, with the line.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        pair = _PAIR.fullmatch(line)
        if pair is None:
            raise InvalidInput(
                f"Line {number} is {line.strip()[:80]!r}; each takes a name, = and a JSON path, such as"
                " order_id = $.data.order.id.",
                field=field,
            )
        if pair[1] in found:
            raise InvalidInput(f"Line {number} names {pair[1][:80]} a second time.", field=field)
        found[pair[1]] = pair[2]
    return found


def lines(named: Mapping[str, str]) -> str:
    """Gives names and paths as lines, the way that pairs() reads them."""
    return "\n".join(f"{name} = {path}" for name, path in named.items())


def add_rule(session: Session, account_id: int, endpoint_id: int, *, user_id: int | None, draft: Draft) -> int:
    """Writes a rule, a draft; gives its number.

    Takes:  user_id, None for the command line.
    Raises: InvalidInput naming a field of Draft; Conflict when the name is taken; Forbidden, NotFound.
    """
    require_admin(session, account_id, user_id)
    endpoint_store.show_endpoint(session, account_id, endpoint_id)
    columns = _checked(session, account_id, draft)
    columns |= {"name": check_name(draft.name, what="A rule's name"), "endpoint_id": endpoint_id}
    rule_id = rule_store.insert_rule(session, account_id, columns={**columns, "changed_by": user_id})
    if rule_id is None:
        raise Conflict(f"The endpoint has a rule {draft.name!r} already; choose another name.")
    record(session, account_id, user_id, "inbox.rule.add", rule_id, name=draft.name)
    return rule_id


def edit_rule(
    session: Session, account_id: int, rule_id: int, *, user_id: int | None, draft: Draft, seen_version: int
) -> None:
    """Writes the next version. It is a draft, even when the one before was on: it has not been tried out.

    Takes:  draft, whose name is left as it is: it stands in dedupe keys' code paths.
    Raises: InvalidInput, Forbidden, NotFound; Conflict when somebody else has changed it meanwhile.
    """
    require_admin(session, account_id, user_id)
    rule = rule_store.show_rule(session, account_id, rule_id)
    columns = {**_checked(session, account_id, draft), "changed_by": user_id}
    if not rule_store.edit_rule(session, account_id, rule_id, seen_version=seen_version, columns=columns):
        raise _changed(rule)
    record(session, account_id, user_id, "inbox.rule.edit", rule_id, version=seen_version + 1)


def switch_on(session: Session, account_id: int, rule_id: int, *, user_id: int | None, seen_version: int) -> list[str]:
    """Switches on a version that has been tried out, in the place of the rule that was on for the same events.

    Gives:  the name of the rule that is off by this, when there was one.
    Raises: Conflict when this version has not been tried out, is on already or is not the newest; Forbidden, NotFound.
    """
    require_admin(session, account_id, user_id)
    rule = rule_store.show_rule(session, account_id, rule_id)
    rule_store.lock_endpoint(session, account_id, rule.endpoint_id)
    replaced = rule_store.switch_off_others(session, account_id, rule)
    if not rule_store.switch_on(session, account_id, rule_id, seen_version=seen_version):
        rule = rule_store.show_rule(session, account_id, rule_id)
        if rule.version != seen_version:
            raise _changed(rule)
        if rule.status == "on":
            raise Conflict(f"The rule {rule.name} is on already.")
        raise Conflict(
            f"Version {rule.version} of the rule {rule.name} has not been tried out with success."
            " Try it out on a stored event first."
        )
    record(session, account_id, user_id, "inbox.rule.on", rule_id, version=seen_version, replaced=replaced)
    return replaced


def switch_off(session: Session, account_id: int, rule_id: int, *, user_id: int | None) -> None:
    """Switches a rule off: its events wait for another, and are shown as without a rule.

    Raises: Conflict when it is not on; Forbidden, NotFound.
    """
    require_admin(session, account_id, user_id)
    rule = rule_store.show_rule(session, account_id, rule_id)
    if not rule_store.switch_off(session, account_id, rule_id):
        raise Conflict(f"The rule {rule.name} is not on.")
    record(session, account_id, user_id, "inbox.rule.off", rule_id)


def require_admin(session: Session, account_id: int, user_id: int | None) -> None:
    """Makes sure that the person may change rules; the command line acts without one.

    Raises: Forbidden.
    """
    if user_id is not None:
        accounts.acting_user(session, account_id, user_id, "admin", doing="change the inbox's rules")


def record(
    session: Session, account_id: int, user_id: int | None, action: str, object_id: int, **details: object
) -> None:
    """Adds to the audit log what was done with a rule or an event."""
    accounts_store.record(
        session, account_id, user_id=user_id, action=action, object_id=object_id, details=dict(details)
    )


def _checked(session: Session, account_id: int, draft: Draft) -> dict[str, object]:
    event_type = draft.event_type.strip()
    if not event_type or len(event_type) > LONGEST_TYPE or not paths.is_plain(event_type):
        raise InvalidInput(
            "Name the type of event that the rule is for, such as order.paid; * takes those that no other rule is for.",
            field="event_type",
        )
    params = mapping.check_names(draft.params, field="params")
    entities = mapping.check_names(draft.entities, field="entities")
    recipient_path = paths.check_path(draft.recipient_path, field="recipient_path")
    if not recipient_path:
        raise InvalidInput(
            "Say where in the event the recipient's address stands, such as $.data.customer.email.",
            field="recipient_path",
        )
    return {
        "event_type": event_type,
        "message_type": draft.message_type.strip(),
        "recipient_path": recipient_path,
        "params": params,
        "dedupe_pattern": mapping.check_pattern(draft.dedupe_pattern, names={**params, **entities}),
        "entities": entities,
    }


def _changed(rule: RuleRow) -> Conflict:
    return Conflict(
        f"The rule {rule.name} was changed since you opened this page; it is at version {rule.version} now."
        " Reload the page and look at it again."
    )
