"""The bounce mailbox: mails are stored first, each once; what they prove settles, suppresses, or does nothing."""

from collections.abc import Iterator
from typing import Any

import make
import post as behind
import pytest
import visit
from peers.imap import PASSWORD, Post
from providers.dsn import report
from sqlalchemy import Engine, text

from console import config
from console.audience.store import suppressions_of
from console.db import transaction
from console.inbox import mailbox, mailboxes
from console.inbox.mailbox import LARGEST_BYTES
from console.inbox.ticks import read_bounces, visit_mailboxes
from console.providers.names import names_of

SETTINGS = config.load({"SENDONCE_SECRET_KEY": make.SECRET_KEY})
RITA = "rita@example.com"


class Bench:
    """An office whose bounces come back to a mailbox on loopback."""

    def __init__(self, office: visit.Office, mails: Post):
        self.office, self.mails = office, mails
        with transaction(office.engine) as session:
            mailboxes.set_mailbox(
                session, office.account_id, url=mails.url, password=PASSWORD, secret_key=make.SECRET_KEY
            )

    def send(self, status: str = "in_doubt", *, email: str = RITA, **columns: Any) -> tuple[int, str, str]:
        """The number of a send, its tag and its Message-ID."""
        with transaction(self.office.engine) as session:
            made = make.send(session, self.office.account_id, email=email, status=status, attempt_no=1, **columns)
            statement = text("SELECT message_id FROM sends WHERE id = :id")
            message_id = session.execute(statement, {"id": made}).scalar_one()
        return made, names_of(self.office.account_id, made, message_id).tag, message_id

    def tick(self) -> None:
        """The mailbox is due; it is visited, and what came is read."""
        with transaction(self.office.engine) as session:
            session.execute(text("UPDATE bounce_mailboxes SET next_visit_at = now()"))
        assert visit_mailboxes(self.office.engine, SETTINGS) == 1
        while read_bounces(self.office.engine, SETTINGS):
            pass

    def rows(self, statement: str, **values: Any) -> list[Any]:
        return behind.rows(self.office, statement, **values)

    def status_of(self, send_id: int) -> str:
        [row] = self.rows("SELECT status FROM sends WHERE id = :id", id=send_id)
        return row.status

    def facts(self) -> list[tuple[str, str | None, int | None]]:
        rows = self.rows("SELECT fact, bounce, send_id FROM provider_events ORDER BY id")
        return [(row.fact, row.bounce, row.send_id) for row in rows]

    def events(self) -> list[tuple[str, int, str]]:
        rows = self.rows("SELECT status, delivery_count, reason FROM inbox_events ORDER BY id")
        return [(row.status, row.delivery_count, row.reason) for row in rows]

    def is_suppressed(self, email: str = RITA) -> bool:
        with transaction(self.office.engine) as session:
            return bool(suppressions_of(session, self.office.account_id, email))

    def error(self) -> str:
        [row] = self.rows("SELECT error FROM bounce_mailboxes")
        return row.error


@pytest.fixture
def bench(engine: Engine) -> Iterator[Bench]:
    with Post() as mails:
        yield Bench(visit.office(engine), mails)


def test_a_bounce_settles_its_message_by_our_tag_and_stops_mail_to_an_address_that_there_is_not(bench: Bench) -> None:
    made, tag, _ = bench.send()
    uid = bench.mails.put(report(tag=tag))
    bench.tick()
    assert bench.status_of(made) == "sent"
    assert bench.facts() == [("bounced", "hard", made)]
    assert bench.is_suppressed()
    assert bench.mails.seen == {uid}
    assert bench.events() == [("done", 1, "")]


def test_a_server_without_envelope_ids_is_understood_by_the_headers_that_it_returns(bench: Bench) -> None:
    made, _, message_id = bench.send()
    bench.mails.put(report(message_id=message_id))
    bench.tick()
    assert bench.status_of(made) == "sent"
    assert bench.facts() == [("bounced", "hard", made)]
    assert bench.is_suppressed()


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"status": "5.7.1", "said": "smtp; 550 5.7.1 blocked"}, ("bounced", "policy")),
        ({"status": "5.2.2", "said": "smtp; 552 5.2.2 full"}, ("bounced", "soft")),
        ({"action": "delayed", "status": "4.4.1"}, ("deferred", None)),
    ],
)
def test_what_is_not_about_the_address_does_not_stop_mail_to_it(bench: Bench, changes: Any, fact: Any) -> None:
    made, tag, _ = bench.send()
    bench.mails.put(report(tag=tag, **changes))
    bench.tick()
    assert bench.status_of(made) == "sent"
    assert bench.facts() == [(*fact, made)]
    assert not bench.is_suppressed()


def test_an_address_that_it_was_forwarded_to_says_nothing_of_the_recipients_own(bench: Bench) -> None:
    made, tag, _ = bench.send()
    bench.mails.put(report(tag=tag, final="rita@old.example.net", original=RITA))
    bench.tick()
    assert bench.facts() == [("bounced", "other", made)]
    assert not bench.is_suppressed()
    assert not bench.is_suppressed("rita@old.example.net")


def test_a_forged_tag_does_nothing_and_stays_visible(bench: Bench) -> None:
    made, tag, message_id = bench.send()
    forged = f"so-{made}-{'0' * 16}"
    assert forged != tag
    bench.mails.put(report(tag=forged, message_id=message_id))
    bench.tick()
    assert bench.status_of(made) == "in_doubt"
    assert bench.facts() == [("bounced", "hard", None)]
    assert not bench.is_suppressed()
    [(status, _, reason)] = bench.events()
    assert (status, reason) == ("done", "It is about no message that went out from here.")


def test_a_message_id_of_a_message_to_somebody_else_is_not_believed(bench: Bench) -> None:
    made, _, message_id = bench.send(email="rob@example.com")
    bench.mails.put(report(message_id=message_id, final=RITA, to=RITA))
    bench.tick()
    assert bench.status_of(made) == "in_doubt"
    assert bench.facts() == [("bounced", "hard", None)]


def test_another_accounts_message_is_never_touched(bench: Bench) -> None:
    with transaction(bench.office.engine) as session:
        other = make.account(session, "other")
        made = make.send(session, other, email=RITA, status="in_doubt", attempt_no=1)
        message_id = session.execute(text("SELECT message_id FROM sends WHERE id = :id"), {"id": made}).scalar_one()
    bench.mails.put(report(tag=names_of(other, made, message_id).tag, message_id=message_id))
    bench.mails.put(report(message_id=message_id))
    bench.tick()
    assert bench.status_of(made) == "in_doubt"
    assert [send_id for _, _, send_id in bench.facts()] == [None, None]


def test_a_mail_that_is_there_already_is_nothing_new(bench: Bench) -> None:
    made, tag, _ = bench.send()
    raw = report(tag=tag)
    bench.mails.put(raw)
    bench.tick()
    bench.mails.put(raw)  # moved out and in again: another number, the same mail
    bench.mails.uid_validity = 8  # and the server numbers all of them anew
    bench.tick()
    assert bench.facts() == [("bounced", "hard", made)]
    assert [count for _, count, _ in bench.events()] == [3]
    before = len(bench.mails.said)
    bench.tick()
    assert not any("FETCH" in said for said in bench.mails.said[before:])


def test_a_line_that_breaks_before_mails_are_marked_loses_and_repeats_nothing(bench: Bench) -> None:
    made, tag, _ = bench.send()
    bench.mails.put(report(tag=tag))

    def leave(said: str) -> None:
        if said.startswith("UID STORE"):
            raise ConnectionError

    bench.mails.before = leave
    bench.tick()
    assert bench.status_of(made) == "sent"
    assert bench.error()
    bench.mails.before = lambda said: None
    bench.tick()
    assert bench.error() == ""
    assert [count for _, count, _ in bench.events()] == [1]


def test_a_mail_is_on_record_before_it_is_marked_as_seen(bench: Bench) -> None:
    found: list[int] = []
    bench.mails.before = lambda said: found.append(len(bench.events())) if said.startswith("UID STORE") else None
    bench.mails.put(report())
    bench.tick()
    assert found == [1]


def test_the_rest_is_read_when_one_mail_can_not_be_had(bench: Bench) -> None:
    made, tag, _ = bench.send()
    bench.mails.withheld = {bench.mails.put(b"broken")}
    bench.mails.put(report(tag=tag))
    bench.tick()
    assert bench.status_of(made) == "sent"
    assert bench.error() == ""


def _deep(levels: int) -> bytes:
    opened = b"".join(
        b'Content-Type: multipart/report; boundary="b%d"\r\n\r\n--b%d\r\n' % (each, each) for each in range(levels)
    )
    return opened + b"Content-Type: text/plain\r\n\r\nhello\r\n"


def test_hostile_mails_stop_nothing(bench: Bench) -> None:
    made, tag, _ = bench.send()
    large = report(tag=tag, behind=b"\r\n" + b"x" * 78 + b"\r\n" + b"A" * 20_000_000)
    for each in (b"", b"\x00" * 5000, _deep(3000), b"Content-Type: multipart/report\r\n" * 5000, b"\xff" * 70_000):
        bench.mails.put(each)
    bench.mails.put(large)
    bench.tick()
    assert len(bench.events()) == 6
    assert bench.status_of(made) == "sent"  # by the part of the 20 MB that is read
    [row] = bench.rows("SELECT max(body_bytes) AS largest, max(headers->>'size') AS size FROM inbox_events")
    assert row.largest == LARGEST_BYTES
    assert bench.error() == ""


@pytest.mark.parametrize("has_plain", [True, False])
def test_a_wrong_password_is_said_without_the_password(bench: Bench, has_plain: bool, capfd: Any) -> None:
    bench.mails.has_plain = has_plain
    wrong = "open-sesame-1"
    with transaction(bench.office.engine) as session:
        mailboxes.set_mailbox(
            session, bench.office.account_id, url=bench.mails.url, password=wrong, secret_key=make.SECRET_KEY
        )
    bench.tick()
    assert "AUTHENTICATIONFAILED" in bench.error()
    page = bench.office.browser("oda").get("/inbox/?reports=bounces").get_data(as_text=True)
    assert "be read" in page
    out = "".join(capfd.readouterr())
    for told in (bench.error(), page, out, repr(mailbox.parse_url(bench.mails.url, password=wrong))):
        assert wrong not in told
    [row] = bench.rows("SELECT sealed_password FROM bounce_mailboxes")
    assert wrong not in row.sealed_password


def test_a_server_that_only_knows_login_gets_name_and_password_quoted(bench: Bench) -> None:
    bench.mails.has_plain = False
    bench.mails.put(report())
    bench.tick()
    assert bench.mails.sign_in_count == 1
    assert bench.error() == ""


def test_a_mailbox_that_is_away_is_tried_again(bench: Bench) -> None:
    with transaction(bench.office.engine) as session:
        url = "imap://bounces%40example.com@127.0.0.1:9/Bounces?tls=off"
        mailboxes.set_mailbox(session, bench.office.account_id, url=url, password=PASSWORD, secret_key=make.SECRET_KEY)
    bench.tick()
    assert "refused" in bench.error().lower()
    assert visit_mailboxes(bench.office.engine, SETTINGS) == 0  # not before its time


def test_a_mailbox_sealed_with_another_key_says_so(bench: Bench) -> None:
    other = config.load({"SENDONCE_SECRET_KEY": "another-key-" + "k" * 32})
    assert visit_mailboxes(bench.office.engine, other) == 1
    assert "SENDONCE_SECRET_KEY" in bench.error()


def test_two_processes_do_not_visit_it_at_once(bench: Bench) -> None:
    inside: list[int] = []

    def visit_too(said: str) -> None:
        if said.startswith("SELECT") and not inside:
            inside.append(-1)
            inside[0] = visit_mailboxes(bench.office.engine, SETTINGS)

    bench.mails.before = visit_too
    bench.tick()
    assert inside == [0]


def test_the_screen_shows_bounces_apart_from_other_reports(bench: Bench) -> None:
    bench.mails.put(report(tag="so-1-0000000000000000"))
    bench.tick()
    browser = bench.office.browser("oda")
    page = browser.get("/inbox/?reports=bounces").get_data(as_text=True)
    assert "about no message that went out" in page
    assert "127.0.0.1" in page
    assert "about no message" not in browser.get("/inbox/?reports=1").get_data(as_text=True)
