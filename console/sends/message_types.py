"""Message types and the templates that they use: how messages of one kind are made, repeated and given up.

A type points to content that never changes: its template's newest version with its sender. Saving a template moves the
types on to new content; messages that were accepted before keep theirs.
"""

import hashlib
import json
import re
from dataclasses import asdict

from sqlalchemy.orm import Session

from console.content import template_store
from console.content.compile import compile_content
from console.content.language import BUILT_IN
from console.content.required import required_fields
from console.content.source import Source
from console.content.template_store import TemplateRow
from console.content.text import text_from_html
from console.errors import InvalidInput
from console.sends import type_store
from console.sends.type_store import NewContent, TypeRow

LANES = ("urgent", "normal", "bulk")
# Seconds until a message that can't be delivered is given up. RFC 5321, 4.5.4.1 has 4 to 5 days; a code or a reset that
# arrives tomorrow is worse than none.
AGE_CAPS_S = {"urgent": 900, "normal": 345_600, "bulk": 345_600}
ATTEMPT_CAP = 12
CAMPAIGN = "campaign"
PATTERN_CHARS_LIMIT = 200
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_PATTERN = re.compile(r"(?:[^{}]|\{[A-Za-z_][A-Za-z0-9_.]*\})+")
_DURATION = re.compile(r"(\d{1,6})([smhd])")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# Stands in for a sender while a template is checked that no type uses yet.
_ANY_SENDER = "someone@example.com"


def seconds(text: str, *, field: str) -> int:
    """Reads a duration such as 90s, 15m, 24h or 7d. Raises: InvalidInput."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise InvalidInput(f"{text!r} is no duration; write 90s, 15m, 24h or 7d.", field=field)
    return int(found[1]) * _UNITS_S[found[2]]


def save_template(
    session: Session,
    account_id: int,
    *,
    name: str,
    subject: str,
    html: str,
    body: str = "",
    author_id: int | None = None,
) -> int:
    """Adds a version to the template, made when there is none, and moves the types that use it on to it.

    Gives: the version's number.
    Raises: InvalidInput naming the field and the line in it.
    """
    _require_name(name, field="name")
    source = Source(subject=subject, sender=_ANY_SENDER, html=html, text=body)
    compile_content(source)
    if "unsubscribe_url" in required_fields(source):
        raise InvalidInput(
            "The template uses unsubscribe_url, which only campaigns have: a single message is on no list.",
            field="html",
        )
    version = template_store.add_version(
        session, account_id, name=name, subject=subject, html=html, body=body, author_id=author_id
    )
    template = template_store.newest(session, account_id, name)
    for used_by in type_store.with_template(session, account_id, name):
        content_id = _content(session, account_id, template=template, sender=used_by.sender or "")
        type_store.point_to(session, account_id, used_by.name, content_id=content_id)
    return version


def put_type(session: Session, account_id: int, row: TypeRow) -> bool:
    """Makes the message type, or sets it to this; gives whether it is new.

    Raises: InvalidInput naming the field; NotFound when there is no such template.
    """
    _require_name(row.name, field="name")
    if row.name == CAMPAIGN:
        _require_campaigns(row, before=type_store.show(session, account_id, CAMPAIGN))
        return type_store.put(session, account_id, row, content_id=None)
    if row.lane not in LANES:
        raise InvalidInput(f"There is no lane {row.lane!r}; use {', '.join(LANES)}.", field="lane")
    if not row.sender:
        raise InvalidInput("A message type needs a sender, such as Shop <shop@example.com>.", field="sender")
    if row.key_pattern is not None:
        _require_pattern(row.key_pattern)
    content_id = None
    if row.template is not None:
        template_store.hold(session, account_id, row.template)
        template = template_store.newest(session, account_id, row.template)
        content_id = _content(session, account_id, template=template, sender=row.sender)
    else:
        _sender_domain(row.sender)
    return type_store.put(session, account_id, row, content_id=content_id)


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
