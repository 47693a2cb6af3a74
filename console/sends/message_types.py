"""Message types and the templates that they use: how messages of one kind are made, repeated and given up.

A type points to content that never changes: its template's newest version with its sender. Saving a template moves the
types on to new content; messages that were accepted before keep theirs.
"""

import hashlib
import json
import re
from dataclasses import asdict

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.accounts import store as accounts_store
from console.content import template_store
from console.content.compile import compile_content
from console.content.language import BUILT_IN
from console.content.required import required_fields
from console.content.source import Source
from console.content.template_store import TemplateRow
from console.content.text import text_from_html
from console.errors import Conflict, InvalidInput
from console.providers import store as provider_store
from console.sends import type_store
from console.sends.type_store import NewContent, TypeRow

LANES = ("urgent", "normal", "bulk")
# Seconds until a message that can't be delivered is given up. RFC 5321, 4.5.4.1 has 4 to 5 days; a code or a reset that
# arrives tomorrow is worse than none.
AGE_CAPS_S = {"urgent": 900, "normal": 345_600, "bulk": 345_600}
ATTEMPT_CAP = 12
ATTEMPT_CAP_LIMIT = 1000
CAMPAIGN = "campaign"
PATTERN_CHARS_LIMIT = 200
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_PATTERN = re.compile(r"(?:[^{}]|\{[A-Za-z_][A-Za-z0-9_.]*\})+")
_DURATION = re.compile(r"(\d{1,6})([smhd])")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# Stands in for a sender while a template is checked that no type uses yet.
ANY_SENDER = "someone@example.com"


def seconds(text: str, *, field: str) -> int:
    """Reads a duration such as 90s, 15m, 24h or 7d. Raises: InvalidInput."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise InvalidInput(f"{text!r} is no duration; write 90s, 15m, 24h or 7d.", field=field)
    return int(found[1]) * _UNITS_S[found[2]]


def duration(length_s: int) -> str:
    """Gives seconds as `seconds` reads them, in the largest unit that fits: 15m, 4d."""
    unit = max((unit for unit, unit_s in _UNITS_S.items() if length_s % unit_s == 0), key=lambda unit: _UNITS_S[unit])
    return f"{length_s // _UNITS_S[unit]}{unit}"


def save_template(
    session: Session,
    account_id: int,
    *,
    name: str,
    subject: str,
    html: str,
    body: str = "",
    author_id: int | None = None,
    after_version: int | None = None,
) -> int:
    """Adds a version to the template, made when there is none, and moves the types that use it on to it.

    Takes: author_id, who writes it, None for the command line; after_version, the version that the author saw (0: there
           was none), None to add one to whatever there is.
    Gives: the version's number.
    Raises: InvalidInput naming the field and the line in it; Conflict when there is another version by now; Forbidden.
    """
    if author_id is not None:
        accounts.acting_user(session, account_id, author_id, "marketer", doing="write templates")
    _require_name(name, field="name")
    source = Source(subject=subject, sender=ANY_SENDER, html=html, text=body)
    compile_content(source)
    if "unsubscribe_url" in required_fields(source):
        raise InvalidInput(
            "The template uses unsubscribe_url, which only campaigns have: a single message is on no list.",
            field="html",
        )
    version = template_store.add_version(
        session, account_id, name=name, subject=subject, html=html, body=body, author_id=author_id
    )
    if after_version is not None and version != after_version + 1:
        raise Conflict(
            f"The template {name} is at version {version - 1} by now, which is not the one that you saw. Look at it,"
            " and put your change into it."
        )
    accounts_store.record(
        session, account_id, user_id=author_id, action="template.save", object_id=name, details={"version": version}
    )
    template = template_store.newest(session, account_id, name)
    for used_by in type_store.with_template(session, account_id, name, is_held=True):
        content_id = _content(session, account_id, template=template, sender=used_by.sender or "")
        type_store.point_to(session, account_id, used_by.name, content_id=content_id)
    return version


def put_type(
    session: Session, account_id: int, row: TypeRow, *, user_id: int | None = None, seen: TypeRow | None = None
) -> bool:
    """Makes the message type, or sets it to this; gives whether it is new.

    Takes:  user_id, who does it, None for the command line; seen, how it stood on the page that the person saw, None to
            set it however it stands.
    Raises: InvalidInput naming the field; NotFound when there is no such template; Conflict when it stands otherwise
            than it was seen; Forbidden.
    """
    if user_id is not None:
        accounts.acting_user(session, account_id, user_id, doing="set message types")
    if seen is not None and type_store.show(session, account_id, row.name, is_held=True) != seen:
        raise Conflict(f"The message type {row.name} was set by somebody else meanwhile. Look at it, and set it again.")
    content_id = _checked(session, account_id, row)
    is_new = type_store.put(session, account_id, row, content_id=content_id)
    accounts_store.record(
        session, account_id, user_id=user_id, action="message_type.set", object_id=row.name, details=asdict(row)
    )
    return is_new


def _checked(session: Session, account_id: int, row: TypeRow) -> int | None:
    """Gives the content that the type's messages are made from; None when callers give the parts."""
    _require_name(row.name, field="name")
    if not (0 < row.attempt_cap <= ATTEMPT_CAP_LIMIT):
        raise InvalidInput(f"Attempts are 1 to {ATTEMPT_CAP_LIMIT:,}.", field="attempt_cap")
    if row.name == CAMPAIGN:
        _require_campaigns(row, before=type_store.show(session, account_id, CAMPAIGN))
        return None
    if row.lane not in LANES:
        raise InvalidInput(f"There is no lane {row.lane!r}; use {', '.join(LANES)}.", field="lane")
    if not row.sender:
        raise InvalidInput("A message type needs a sender, such as Shop <shop@example.com>.", field="sender")
    if row.key_pattern is not None:
        _require_pattern(row.key_pattern)
    if row.route is not None and provider_store.route(session, account_id, row.route) is None:
        raise InvalidInput(f"There is no route {row.route!r}; set it first.", field="route")
    if row.template is None:
        _sender_domain(row.sender)
        return None
    template_store.hold(session, account_id, row.template)
    template = template_store.newest(session, account_id, row.template)
    return _content(session, account_id, template=template, sender=row.sender)


def _require_campaigns(row: TypeRow, *, before: TypeRow) -> None:
    """Raises: InvalidInput for a change of what campaigns say themselves."""
    own = {"in_doubt_policy", "attempt_cap", "age_cap_s"}
    for name, value in asdict(row).items():
        if name not in own and value != getattr(before, name):
            raise InvalidInput(
                "The type 'campaign' is the campaigns' own: only its policy for messages in doubt, its attempts and its"
                " age can be set. Choose another name for single messages.",
                field=name,
            )


def _content(session: Session, account_id: int, *, template: TemplateRow, sender: str) -> int:
    body = template.text if template.text.strip() else text_from_html(template.html)
    source = Source(subject=template.subject, sender=sender, html=template.html, text=body)
    compile_content(source)
    parts = ["template", template.name, template.version, sender, source.subject, source.html, source.text]
    return type_store.keep_content(
        session,
        account_id,
        NewContent(
            fingerprint=hashlib.sha256(json.dumps(parts).encode()).hexdigest(),
            subject=source.subject,
            sender=sender,
            sender_domain=_sender_domain(sender),
            html=source.html,
            body=source.text,
            template=template.name,
            template_version=template.version,
            required_fields=sorted(required_fields(source) - set(BUILT_IN)),
        ),
    )


def _sender_domain(sender: str) -> str:
    """Gives the domain for Message-IDs. Raises: InvalidInput."""
    compiled = compile_content(Source(subject="x", sender=sender, html="x"))
    if compiled.fields:
        raise InvalidInput(
            "A message type's sender is the same for all its messages: it can't hold a merge field.", field="sender"
        )
    domain = compiled.sender.address.rpartition("@")[2].lower()
    if not domain.isascii():
        raise InvalidInput("Write the sender's domain in A-labels, such as xn--mnchen-3ya.example.", field="sender")
    return domain


def _require_pattern(pattern: str) -> None:
    if not _PATTERN.fullmatch(pattern) or "{" not in pattern or len(pattern) > PATTERN_CHARS_LIMIT:
        raise InvalidInput(
            "A key pattern holds names in braces, such as order_receipt:{order_id}:{email_type}, and at most"
            f" {PATTERN_CHARS_LIMIT} characters.",
            field="key_pattern",
        )
    if pattern.startswith("campaign:"):
        raise InvalidInput(
            "Keys that begin with campaign: are those of campaigns; begin it with the type's name.", field="key_pattern"
        )


def _require_name(name: str, *, field: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is no name: use up to 63 of a-z, 0-9, '_', '.' and '-', beginning with a letter or digit.",
            field=field,
        )
