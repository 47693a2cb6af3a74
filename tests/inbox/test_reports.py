"""POST /inbox/reports/<kind>/<token>: verified as each vendor signs, stored first, and what it tells is settled."""

import base64
import json
from datetime import timedelta
from typing import Any

import make
import post
import pytest
import visit
from providers import configure, told
from providers.test_sns import Topic
from sqlalchemy import Engine, text
from standardwebhooks import Webhook
from werkzeug.test import TestResponse

from console import clock
from console.db import make_engine, transaction
from console.inbox import report_address
from console.inbox.report_kinds import REPORTS
from console.inbox.ticks import read_reports
from console.providers.kinds import KINDS
from console.providers.names import names_of
from console.providers.sns import Certificates

SECRET = post.WEBHOOK_SECRET
WANTED = {
    "mailjet": {"api_key": "public"},
    "ses": {"region": "eu-west-1", "access_key": "AKIA", "topic_arn": "arn:aws:sns:x"},
}


class Vendor:
    """A configured provider that reports to the office."""

    def __init__(self, office: visit.Office, kind: str, *, has_secret: bool = True):
        self.office, self.kind = office, kind
        self.topic = Topic() if kind == "ses" else None
        if self.topic:
            office.app.extensions["sns_certificates"] = Certificates(self.topic.fetch)
        self.provider_id = configure.provider(
            office.engine, office.account_id, name=kind, kind=kind, settings=WANTED.get(kind)
        )
        with transaction(office.engine) as session:
            self.address = report_address.make(session, office.account_id, self.provider_id, user_id=None)
            if kind == "resend" and has_secret:
                self.set_secret(session, SECRET)

    def set_secret(self, session: Any, secret: str) -> None:
        report_address.set_secret(
            session,
            self.office.account_id,
            self.provider_id,
            user_id=None,
            secret=secret,
            secret_key=configure.SECRET_KEY,
        )

    def post(self, body: Any, *, headers: dict[str, str] | None = None, event_id: str = "evt-1") -> TestResponse:
        """Posts a report, signed as the vendor does; with `headers` those alone."""
        if self.topic and isinstance(body, dict) and "Signature" not in body:
            body = self.topic.signed(body)
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        if headers is None:
            headers = svix(sent, event_id=event_id) if self.kind == "resend" else {}
        path = f"/inbox/reports/{self.address.kind}/{self.address.token}"
        return self.office.app.test_client().post(path, data=sent, headers=headers, content_type="application/json")

    def read(self) -> int:
        return read_reports(self.office.engine, post.SETTINGS)


def svix(body: bytes, *, event_id: str, at: Any = None) -> dict[str, str]:
    """Svix's headers, by the library of Standard Webhooks."""
    moment = at or clock.now()
    signature = Webhook(SECRET).sign(msg_id=event_id, timestamp=moment, data=body.decode())
    return {"svix-id": event_id, "svix-timestamp": str(int(moment.timestamp())), "svix-signature": signature}


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def send(office: visit.Office, status: str = "in_doubt", **columns: Any) -> tuple[int, str]:
    """The number of a send, and its tag."""
    with transaction(office.engine) as session:
        made = make.send(session, office.account_id, status=status, attempt_no=1, **columns)
        message_id = session.execute(text("SELECT message_id FROM sends WHERE id = :id"), {"id": made}).scalar_one()
    return made, names_of(office.account_id, made, message_id).tag


def status_of(office: visit.Office, send_id: int) -> str:
    [row] = post.rows(office, "SELECT status FROM sends WHERE id = :id", id=send_id)
    return row.status


DELIVERED = {
    "ses": lambda tag: told.ses("Delivery", tag=tag),
    "resend": lambda tag: told.resend("delivered", tag=tag),
    "brevo": lambda tag: told.brevo("delivered", tag=tag),
    "postmark": lambda tag: told.postmark("Delivery", tag=tag),
    "mailjet": lambda tag: [told.mailjet("sent", tag=tag)],
}
COMPLAINED = {
    "ses": lambda tag: told.ses("Complaint", tag=tag, message_id="m-2"),
    "resend": lambda tag: told.resend("complained", tag=tag),
    "brevo": lambda tag: told.brevo("spam", tag=tag),
    "postmark": lambda tag: told.postmark("SpamComplaint", tag=tag),
    "mailjet": lambda tag: [told.mailjet("spam", tag=tag)],
}
EACH = pytest.mark.parametrize("kind", list(REPORTS))


def test_every_kind_that_says_it_reports_can_report() -> None:
    assert {name for name, kind in KINDS.items() if kind.capabilities.has_reports} == set(REPORTS)


@EACH
def test_a_report_settles_a_message_in_doubt_by_our_tag(office: visit.Office, kind: str) -> None:
    vendor = Vendor(office, kind)
    made, tag = send(office)
    answer = vendor.post(DELIVERED[kind](tag))
    assert (answer.status_code, answer.json["status"]) == (200, "stored")
    assert status_of(office, made) == "in_doubt"  # stored first; what follows is the tick's
    assert vendor.read() == 1
    assert status_of(office, made) == "sent"
    [event] = post.rows(office, "SELECT status, send_id, reason FROM inbox_events")
    assert tuple(event) == ("done", made, "")
    [fact] = post.rows(office, "SELECT provider, fact, send_id, inbox_event_id IS NOT NULL AS has FROM provider_events")
    assert tuple(fact) == (kind, "delivered", made, True)


@EACH
def test_a_redelivery_is_counted_and_changes_nothing(office: visit.Office, kind: str) -> None:
    vendor = Vendor(office, kind)
    made, tag = send(office)
    body = DELIVERED[kind](tag)
    for _ in range(3):
        assert vendor.post(body).status_code == 200
        vendor.read()
    [event] = post.rows(office, "SELECT delivery_count, run_count FROM inbox_events")
    assert tuple(event) == (3, 1)
    assert len(post.rows(office, "SELECT id FROM provider_events")) == 1
    assert status_of(office, made) == "sent"


@EACH
def test_a_complaint_stops_mail_to_its_address_in_any_order(office: visit.Office, kind: str) -> None:
    vendor = Vendor(office, kind)
    made, tag = send(office, email="Rita@example.com")
    vendor.post(COMPLAINED[kind](tag), event_id="evt-2")
    vendor.post(DELIVERED[kind](tag))
    assert vendor.read() == 2
    assert status_of(office, made) == "sent"
    stops = post.rows(office, "SELECT email_lower, kind, send_id FROM suppressions")
    assert [tuple(row) for row in stops] == [("rita@example.com", "complained", made)]


@EACH
def test_a_report_before_our_own_answer_settles_when_the_worker_dies(office: visit.Office, kind: str) -> None:
    vendor = Vendor(office, kind)
    made, tag = send(office, "sending")
    vendor.post(DELIVERED[kind](tag))
    vendor.read()
    assert status_of(office, made) == "sending"
    post.rows(office, "UPDATE sends SET status = 'in_doubt' WHERE id = :id RETURNING id", id=made)
    assert vendor.read() == 1
    assert status_of(office, made) == "sent"


@EACH
def test_a_report_about_a_stranger_s_message_is_kept(office: visit.Office, kind: str) -> None:
    vendor = Vendor(office, kind)
    assert vendor.post(DELIVERED[kind]("newsletter")).status_code == 200
    vendor.read()
    [event] = post.rows(office, "SELECT status, reason FROM inbox_events")
    assert event.status == "done"
    assert "no message" in event.reason


@EACH
@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[1]", b"\xff", b'{"a": 1e999999}'])
def test_a_body_that_tells_nothing_is_kept_and_breaks_nothing(office: visit.Office, kind: str, body: bytes) -> None:
    vendor = Vendor(office, kind)
    if kind == "ses":
        assert vendor.post(body).status_code == 401
        return
    headers = {} if kind != "resend" else None
    if kind == "resend" and body == b"\xff":
        return  # its library signs text only
    assert vendor.post(body, headers=headers).status_code == 200
    vendor.read()
    [event] = post.rows(office, "SELECT status, reason FROM inbox_events")
    assert event.status in ("done", "failed")
    assert event.reason


def test_resend_s_reports_are_refused_without_its_signature(office: visit.Office) -> None:
    vendor = Vendor(office, "resend")
    body = json.dumps(told.resend("delivered")).encode()
    good = svix(body, event_id="evt-1")
    for headers in (
        {},
        {**good, "svix-signature": "v1," + base64.b64encode(b"x" * 32).decode()},
        {**good, "svix-id": "evt-2"},
        svix(body, event_id="evt-1", at=clock.now() - timedelta(minutes=6)),
    ):
        assert vendor.post(body, headers=headers).status_code == 401
    assert post.rows(office, "SELECT id FROM inbox_events") == []
    assert vendor.post(body, headers=good).status_code == 200


def test_before_its_secret_is_known_nothing_of_resend_is_taken(office: visit.Office) -> None:
    vendor = Vendor(office, "resend", has_secret=False)
    assert vendor.post(told.resend("delivered")).status_code == 404
    with transaction(office.engine) as session:
        vendor.set_secret(session, SECRET)
    assert vendor.post(told.resend("delivered")).status_code == 200


def test_amazons_reports_are_refused_without_its_signature_or_of_another_topic(office: visit.Office) -> None:
    vendor = Vendor(office, "ses")
    assert vendor.topic is not None
    signed = vendor.topic.signed(told.ses("Delivery"))
    stranger = Topic().signed(told.ses("Delivery"))
    elsewhere = vendor.topic.signed({**told.ses("Delivery"), "TopicArn": "arn:aws:sns:other"})
    for body in ({**told.ses("Delivery"), "Signature": ""}, {**signed, "Message": "{}"}, stranger, elsewhere):
        assert vendor.post(body).status_code == 401
    assert post.rows(office, "SELECT id FROM inbox_events") == []
    refusals = post.rows(office, "SELECT reason, refused_count FROM inbox_refusals ORDER BY reason")
    assert sum(row.refused_count for row in refusals) == 4


def test_a_subscription_of_the_topic_that_is_set_is_confirmed(office: visit.Office) -> None:
    vendor = Vendor(office, "ses")
    assert vendor.topic is not None
    names = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
    url = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"
    asked = {
        "Type": "SubscriptionConfirmation",
        "MessageId": "m-1",
        "Token": "t",
        "TopicArn": "arn:aws:sns:x",
        "Message": "You have chosen ...",
        "SubscribeURL": url,
    }
    assert vendor.post(vendor.topic.signed(asked, names=names)).status_code == 200
    assert vendor.topic.fetched[-1] == url
    vendor.topic.fetched.clear()
    strange = {**asked, "MessageId": "m-2", "SubscribeURL": "https://example.com/"}
    assert vendor.post(vendor.topic.signed(strange, names=names)).status_code == 200
    assert vendor.topic.fetched == []
    vendor.read()
    assert {row.status for row in post.rows(office, "SELECT status FROM inbox_events")} == {"done"}


def test_where_nothing_is_signed_a_user_and_password_can_be_asked_for(office: visit.Office) -> None:
    vendor = Vendor(office, "postmark")
    body = told.postmark("Delivery")
    assert vendor.post(body).status_code == 200
    with transaction(office.engine) as session:
        vendor.set_secret(session, "ann:swordfish")
    assert vendor.post(body).status_code == 401
    right = {"Authorization": "Basic " + base64.b64encode(b"ann:swordfish").decode()}
    assert vendor.post(body, headers=right).status_code == 200


@pytest.mark.parametrize(("kind", "status"), [("resend", 503), ("postmark", 503), ("ses", 503), ("brevo", 429)])
def test_while_our_database_is_down_the_vendor_is_asked_to_come_again(
    office: visit.Office, kind: str, status: int
) -> None:
    vendor = Vendor(office, kind)
    vendor.office = visit.Office(**{**office.__dict__, "app": visit.site(make_engine("postgresql://n@127.0.0.1:1/n"))})
    answer = vendor.post(DELIVERED[kind]("x"))
    assert answer.status_code == status
    assert int(answer.headers["Retry-After"]) > 0


def test_an_address_of_nobody_is_not_there(office: visit.Office) -> None:
    vendor = Vendor(office, "postmark")
    client, token = office.app.test_client(), vendor.address.token
    for path in (
        f"/inbox/reports/postmark/{token[:-1]}x",
        f"/inbox/reports/brevo/{token}",
        f"/inbox/reports/smtp/{token}",
        f"/inbox/reports-postmark/{token}",
    ):
        assert client.post(path, json={}).status_code == 404
    shop = post.endpoint(office)
    assert client.post(f"/inbox/reports/postmark/{shop.token}", json={}).status_code == 404


def test_a_body_over_1_mb_is_refused(office: visit.Office) -> None:
    vendor = Vendor(office, "mailjet")
    assert vendor.post(b" " * (1024 * 1024 + 1)).status_code == 413
    group = [told.mailjet("open", tag="x" * 200) for _ in range(2000)]
    assert vendor.post(group).status_code == 200


def test_an_account_s_reports_do_not_touch_another_s_messages(office: visit.Office, engine: Engine) -> None:
    made, tag = send(office)
    other = visit.office(engine, slug="other", app=office.app)
    vendor = Vendor(other, "postmark")
    vendor.post(told.postmark("Delivery", tag=tag))
    vendor.read()
    assert status_of(office, made) == "in_doubt"
