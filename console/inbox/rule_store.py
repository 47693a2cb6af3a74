"""SQL of rules: written, tried, switched. Each move is a compare-and-set on the version that was seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from console.errors import NotFound
from console.inbox.mapping import RuleMap
from console.inbox.models import Endpoint, Rule

ANY_TYPE = "*"


@dataclass(frozen=True)
class RuleRow:
    """A rule with all that screens and the reader need of it."""

    id: int
    endpoint_id: int
    endpoint_name: str
    name: str
    event_type: str
    status: str
    version: int
    message_type: str
    recipient_path: str
    params: dict[str, str]
    dedupe_pattern: str
    entities: dict[str, str]
    tried_version: int | None
    tried_event_id: int | None
    tried_at: datetime | None
    changed_at: datetime

    @property
    def is_tried(self) -> bool:
        return self.tried_version == self.version

    @property
    def map(self) -> RuleMap:
        return RuleMap(
            recipient_path=self.recipient_path,
            params=self.params,
            dedupe_pattern=self.dedupe_pattern,
            entities=self.entities,
        )

    def is_for(self, event_type: str) -> bool:
        """Tells whether the rule may be run on events of this type."""
        return self.event_type in (ANY_TYPE, event_type)


_COLUMNS = (
    Rule.id, Rule.endpoint_id, Endpoint.name.label("endpoint_name"), Rule.name, Rule.event_type, Rule.status,
    Rule.version, Rule.message_type, Rule.recipient_path, Rule.params, Rule.dedupe_pattern, Rule.entities,
    Rule.tried_version, Rule.tried_event_id, Rule.tried_at, Rule.changed_at,
)  # fmt: skip


def insert_rule(session: Session, account_id: int, *, columns: dict[str, Any]) -> int | None:
    """Adds a rule, a draft; gives its number, None when its endpoint has one with that name."""
    statement = insert(Rule).values(account_id=account_id, **columns).on_conflict_do_nothing()
    return session.scalars(statement.returning(Rule.id)).one_or_none()


def edit_rule(session: Session, account_id: int, rule_id: int, *, seen_version: int, columns: dict[str, Any]) -> bool:
    """Writes the next version, a draft; tells whether the seen one was still the newest."""
    statement = (
        update(Rule)
        .where(Rule.account_id == account_id, Rule.id == rule_id, Rule.version == seen_version)
        .values(version=Rule.version + 1, status="draft", changed_at=func.now(), **columns)
    )
    return session.execute(statement.returning(Rule.id)).one_or_none() is not None


def note_trial(session: Session, account_id: int, rule_id: int, *, version: int, event_id: int) -> bool:
    """Writes that this version has been tried out with success; tells whether it is still the newest."""
    statement = (
        update(Rule)
        .where(Rule.account_id == account_id, Rule.id == rule_id, Rule.version == version)
        .values(tried_version=version, tried_event_id=event_id, tried_at=func.now())
    )
    return session.execute(statement.returning(Rule.id)).one_or_none() is not None


def lock_endpoint(session: Session, account_id: int, endpoint_id: int) -> None:
    """Lets one at a time switch the rules of an endpoint: the second sees what the first has done."""
    session.execute(
        select(Endpoint.id).where(Endpoint.account_id == account_id, Endpoint.id == endpoint_id).with_for_update()
    )


def switch_off_others(session: Session, account_id: int, rule: RuleRow) -> list[str]:
    """Switches off the other rule that is on for the same events; gives its name, when there was one."""
    statement = (
        update(Rule)
        .where(Rule.account_id == account_id, Rule.endpoint_id == rule.endpoint_id, Rule.id != rule.id)
        .where(Rule.event_type == rule.event_type, Rule.status == "on")
        .values(status="off")
    )
    return list(session.scalars(statement.returning(Rule.name)))


def switch_on(session: Session, account_id: int, rule_id: int, *, seen_version: int) -> bool:
    """Switches on a version that has been tried out; tells whether it did."""
    statement = (
        update(Rule)
        .where(Rule.account_id == account_id, Rule.id == rule_id, Rule.status.in_(("draft", "off")))
        .where(Rule.version == seen_version, Rule.tried_version == Rule.version)
        .values(status="on")
    )
    return session.execute(statement.returning(Rule.id)).one_or_none() is not None


def switch_off(session: Session, account_id: int, rule_id: int) -> bool:
    """Switches off a rule that is on; tells whether it was."""
    statement = (
        update(Rule).where(Rule.account_id == account_id, Rule.id == rule_id, Rule.status == "on").values(status="off")
    )
    return session.execute(statement.returning(Rule.id)).one_or_none() is not None


def show_rule(session: Session, account_id: int, rule_id: int) -> RuleRow:
    """Gives one rule.

    Raises: NotFound.
    """
    row = session.execute(_query(account_id).where(Rule.id == rule_id)).one_or_none()
    if row is None:
        raise NotFound(f"There is no rule {rule_id} in this account. Look at its endpoint.")
    return RuleRow(**row._mapping)


def rule_by_name(session: Session, account_id: int, endpoint_id: int, name: str) -> RuleRow:
    """Gives an endpoint's rule with this name.

    Raises: NotFound.
    """
    query = _query(account_id).where(Rule.endpoint_id == endpoint_id, Rule.name == name)
    row = session.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"The endpoint has no rule {name!r}. Make it with: sendonce inbox rule add NAME")
    return RuleRow(**row._mapping)


def rules_of(session: Session, account_id: int, endpoint_id: int) -> Sequence[RuleRow]:
    """Gives an endpoint's rules, those that are on first."""
    query = _query(account_id).where(Rule.endpoint_id == endpoint_id).order_by(Rule.status != "on", Rule.name)
    return [RuleRow(**row._mapping) for row in session.execute(query)]


def rule_for(session: Session, account_id: int, endpoint_id: int, event_type: str) -> RuleRow | None:
    """Gives the rule that is on for events of this type, before the one for all types; None when there is none."""
    query = (
        _query(account_id)
        .where(Rule.endpoint_id == endpoint_id, Rule.status == "on", Rule.event_type.in_((event_type, ANY_TYPE)))
        .order_by(Rule.event_type == ANY_TYPE)
        .limit(1)
    )
    row = session.execute(query).one_or_none()
    return None if row is None else RuleRow(**row._mapping)


def _query(account_id: int):
    return (
        select(*_COLUMNS)
        .join(Endpoint, (Endpoint.account_id == Rule.account_id) & (Endpoint.id == Rule.endpoint_id))
        .where(Rule.account_id == account_id)
    )
