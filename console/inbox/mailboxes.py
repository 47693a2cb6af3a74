"""Rules of bounce mailboxes: who may set one, and visits to them: each mail is stored, then marked as seen."""

import hashlib
import secrets
import uuid
from itertools import islice

import structlog
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from console.accounts import store as accounts_store
from console.config import Settings
from console.db import transaction
from console.errors import ConfigError, Conflict, InvalidInput, NotFound
from console.inbox import endpoint_store, mailbox, mailbox_store, store
from console.inbox.arrival import Arrival
from console.inbox.bounce_reading import READER
from console.inbox.mailbox import Mail, MailboxTrouble, OpenMailbox
from console.inbox.mailbox_store import Due
from console.inbox.service import TOKEN_BYTES, hash_of
from console.secrets import seal, unseal

log = structlog.get_logger(__name__)

VISIT_EVERY_S = 60.0
# Longer than a visit takes; after that another process may go.
LEASE_S = 600.0
MAILS_A_VISIT = 200
MARK_TOGETHER = 20
_ENDPOINT = "bounce-mailbox"


def set_mailbox(session: Session, account_id: int, *, url: str, password: str, secret_key: str) -> str:
    """Sets the mailbox that an account's bounces come back to; gives its URL as it is kept. For the command line.

    Raises: InvalidInput naming url or password; Conflict.
    """
    place = mailbox.parse_url(url)
    if not password or not password.isprintable():
        raise InvalidInput("Give the mailbox's password: one line without control characters.", field="password")
    before = mailbox_store.mailbox_of(session, account_id)
    mailbox_store.put_mailbox(
        session,
        account_id,
        endpoint_id=before.endpoint_id if before else _endpoint(session, account_id),
        url=place.url,
        sealed_password=seal(secret_key, password),
    )
    details = {"url": place.url}
    accounts_store.record(
        session, account_id, user_id=None, action="bounces.set", object_id=account_id, details=details
    )
    return place.url


def remove_mailbox(session: Session, account_id: int) -> None:
    """Forgets an account's mailbox; what came from it stays.

    Raises: NotFound.
    """
    if not mailbox_store.delete_mailbox(session, account_id):
        raise NotFound("The account has no bounce mailbox. Set one with: sendonce bounces set")
    accounts_store.record(session, account_id, user_id=None, action="bounces.remove", object_id=account_id, details={})


def visit_next(engine: Engine, settings: Settings) -> bool:
    """Visits the mailbox that is due and stores its new mails; False when none is. No transaction waits for it."""
    with transaction(engine) as session:
        due = mailbox_store.take_due(session, lease_s=LEASE_S)
    if due is None:
        return False
    error, count = "", 0
    try:
        place = mailbox.parse_url(due.url, password=unseal(settings.secret_key, due.sealed_password))
        with mailbox.visit(place) as opened:
            count = _store_new(engine, due, opened)
    except (MailboxTrouble, ConfigError) as trouble:
        error = str(trouble)
        log.warning("bounces.not_read", account_id=due.account_id, reason=error)
    with transaction(engine) as session:
        wait_s = 0.0 if count == MAILS_A_VISIT else VISIT_EVERY_S
        mailbox_store.end_visit(session, due.account_id, error=error, wait_s=wait_s)
    return True


def _store_new(engine: Engine, due: Due, opened: OpenMailbox) -> int:
    """Stores new mails one by one, with how far they are read in the same transaction; gives how many."""
    after_uid = due.last_uid if due.uid_validity == opened.uid_validity else 0
    stored: list[int] = []
    for mail in islice(opened.new_mails(after_uid=after_uid), MAILS_A_VISIT):
        with transaction(engine) as session:
            arrival = _arrival(mail, uid_validity=opened.uid_validity)
            store.store_first(session, due.account_id, due.endpoint_id, arrival=arrival, reader=READER)
            mailbox_store.advance(session, due.account_id, uid_validity=opened.uid_validity, uid=mail.uid)
        stored.append(mail.uid)
        if len(stored) % MARK_TOGETHER == 0:
            opened.mark_seen(stored[-MARK_TOGETHER:])
    opened.mark_seen(stored[len(stored) - len(stored) % MARK_TOGETHER :])
    if stored:
        log.info("bounces.stored", account_id=due.account_id, mail_count=len(stored))
    return len(stored)


def _arrival(mail: Mail, *, uid_validity: int) -> Arrival:
    # The bytes are its id: a server that numbers its mails anew, or a mail moved out and in, brings nothing new.
    digest = hashlib.sha256(mail.raw).hexdigest()
    return Arrival(
        event_id=f"sha256:{digest}",
        id_source="hash",
        event_type="mail",
        body=mail.raw,
        body_sha256=digest,
        headers={"uid": f"{uid_validity}:{mail.uid}", "size": str(mail.size)},
        request_id=f"imap-{uid_validity}-{mail.uid}",
        correlation_id=uuid.uuid4().hex,
    )


def _endpoint(session: Session, account_id: int) -> int:
    """Gives the number of what the mailbox's mails are stored under: no address of it is known to anybody."""
    columns = {
        "name": _ENDPOINT,
        "token_hash": hash_of(secrets.token_urlsafe(TOKEN_BYTES)),
        "reader": READER,
        "scheme": "none",
        "is_active": False,
        "event_id_path": "",
        "event_type_path": "",
    }
    made = endpoint_store.insert_endpoint(session, account_id, columns=columns)
    if made is not None:
        return made
    found = endpoint_store.endpoint_by_name(session, account_id, _ENDPOINT)
    if found.reader != READER:
        raise Conflict(f"An endpoint of the inbox has the name {_ENDPOINT!r} already, which the mailbox needs.")
    return found.id
