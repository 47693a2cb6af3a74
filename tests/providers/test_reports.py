"""What vendors report, brought to one shape: which fact, whose message, and whether the address is to blame."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from providers import told

from console.providers import amazon_reports, brevo_reports, mailjet_reports, postmark_reports, resend_reports
from console.providers.reports import Bounce, Fact, Reader, bounce_class, epoch, iso

AT = datetime(2026, 12, 1, 10, 0, 5, tzinfo=UTC)
READERS = {
    "ses": amazon_reports.read,
    "resend": resend_reports.read,
    "brevo": brevo_reports.read,
    "postmark": postmark_reports.read,
    "mailjet": mailjet_reports.read,
}
FACTS = [
    ("ses", told.ses("Send"), Fact.ACCEPTED),
    ("ses", told.ses("Delivery", smtpResponse="250 ok"), Fact.DELIVERED),
    ("ses", told.ses("DeliveryDelay"), Fact.DEFERRED),
    ("ses", told.ses_bounce(), Fact.BOUNCED),
    ("ses", told.ses("Complaint", complaintFeedbackType="abuse"), Fact.COMPLAINED),
    ("ses", told.ses("Open"), Fact.OPENED),
    ("ses", told.ses("Reject", reason="Bad content"), Fact.DROPPED),
    ("ses", told.ses("Rendering Failure"), Fact.DROPPED),
    ("resend", told.resend("sent"), Fact.ACCEPTED),
    ("resend", told.resend("delivered"), Fact.DELIVERED),
    ("resend", told.resend("delivery_delayed"), Fact.DEFERRED),
    ("resend", told.resend_bounce(), Fact.BOUNCED),
    ("resend", told.resend("complained"), Fact.COMPLAINED),
    ("resend", told.resend("opened"), Fact.OPENED),
    ("resend", told.resend("failed"), Fact.DROPPED),
    ("brevo", told.brevo("request"), Fact.ACCEPTED),
    ("brevo", told.brevo("delivered"), Fact.DELIVERED),
    ("brevo", told.brevo("deferred"), Fact.DEFERRED),
    ("brevo", told.brevo("hard_bounce"), Fact.BOUNCED),
    ("brevo", told.brevo("soft_bounce"), Fact.BOUNCED),
    ("brevo", told.brevo("invalid_email"), Fact.BOUNCED),
    ("brevo", told.brevo("spam"), Fact.COMPLAINED),
    ("brevo", told.brevo("unique_opened"), Fact.OPENED),
    ("brevo", told.brevo("blocked"), Fact.DROPPED),
    ("postmark", told.postmark("Delivery"), Fact.DELIVERED),
    ("postmark", told.postmark("Bounce", Type="HardBounce"), Fact.BOUNCED),
    ("postmark", told.postmark("SpamComplaint", Type="SpamComplaint"), Fact.COMPLAINED),
    ("postmark", told.postmark("Open"), Fact.OPENED),
    ("mailjet", told.mailjet("sent"), Fact.DELIVERED),
    ("mailjet", told.mailjet("bounce", hard_bounce=True), Fact.BOUNCED),
    ("mailjet", told.mailjet("blocked"), Fact.DROPPED),
    ("mailjet", told.mailjet("spam"), Fact.COMPLAINED),
    ("mailjet", told.mailjet("open"), Fact.OPENED),
]


@pytest.mark.parametrize(("vendor", "body", "fact"), FACTS, ids=[f"{v}-{f}-{n}" for n, (v, _, f) in enumerate(FACTS)])
def test_each_event_is_a_fact_about_one_message(vendor: str, body: Any, fact: Fact) -> None:
    [report] = READERS[vendor](body)
    assert report.fact is fact
    assert report.tag == told.TAG
    assert report.provider_id
    assert report.email == "rita@example.com"
    assert report.happened_at is not None
    # Amazon's Send has no time of its own, and takes the message's.
    assert abs(report.happened_at - AT) < timedelta(seconds=6)
    assert (report.bounce is not None) is (fact is Fact.BOUNCED)


@pytest.mark.parametrize(
    ("vendor", "body"),
    [
        ("ses", told.ses("Click")),
        ("ses", told.ses("Subscription")),
        ("ses", {"Type": "SubscriptionConfirmation", "Message": "You have chosen ..."}),
        ("resend", told.resend("clicked")),
        ("resend", {"type": "domain.created", "data": {}}),
        ("brevo", told.brevo("click")),
        ("postmark", told.postmark("SubscriptionChange")),
        ("mailjet", told.mailjet("unsub")),
    ],
)
def test_other_events_say_nothing(vendor: str, body: Any) -> None:
    assert READERS[vendor](body) == []


@pytest.mark.parametrize("reader", READERS.values(), ids=list(READERS))
@pytest.mark.parametrize(
    "body",
    [None, 1, "x", [], {}, [None, 1], {"type": 1, "event": [], "RecordType": {}, "Message": "[1]"}, {"Message": "{"}],
)
def test_any_body_is_read_without_an_error(reader: Reader, body: Any) -> None:
    assert reader(body) == []


def test_fields_of_the_wrong_kind_are_left_out() -> None:
    [report] = resend_reports.read(
        {"type": "email.bounced", "data": {"to": 1, "tags": 2, "bounce": [], "email_id": {}}}
    )
    assert (report.tag, report.provider_id, report.email, report.happened_at) == ("", "", "", None)
    [report] = amazon_reports.read(told.ses("Bounce", bouncedRecipients=[1], bounceType=2))
    assert report.bounce is Bounce.SOFT


def test_a_group_of_events_is_read_one_by_one() -> None:
    group = [told.mailjet("sent"), told.mailjet("unsub"), told.mailjet("open")]
    assert [report.fact for report in mailjet_reports.read(group)] == [Fact.DELIVERED, Fact.OPENED]
    assert len(brevo_reports.read([told.brevo("request"), told.brevo("delivered")])) == 2


BOUNCES = [
    ("ses", told.ses_bounce(status="5.1.1", remote="smtp; 550 5.1.1 user unknown"), Bounce.HARD),
    ("ses", told.ses_bounce(detail="NoEmail"), Bounce.HARD),
    ("ses", told.ses_bounce(detail="OnAccountSuppressionList"), Bounce.HARD),
    ("ses", told.ses_bounce(status="5.7.1", remote="smtp; 554 5.7.1 blocked"), Bounce.POLICY),
    ("ses", told.ses_bounce(remote="smtp; 550 5.7.26 unauthenticated"), Bounce.POLICY),
    ("ses", told.ses_bounce(detail="ContentRejected", kind="Transient"), Bounce.POLICY),
    ("ses", told.ses_bounce("Transient", "MailboxFull", status="5.2.2"), Bounce.SOFT),
    ("ses", told.ses_bounce("Undetermined", "Undetermined"), Bounce.SOFT),
    ("resend", told.resend_bounce(remote="smtp; 550 5.1.1 no such user"), Bounce.HARD),
    ("resend", told.resend_bounce(remote="smtp; 550 5.7.515 access denied"), Bounce.POLICY),
    ("resend", told.resend_bounce("Transient"), Bounce.SOFT),
    ("brevo", told.brevo("hard_bounce", reason="550 5.1.1 unknown"), Bounce.HARD),
    ("brevo", told.brevo("hard_bounce", reason="550-5.7.26 unauthenticated sender"), Bounce.POLICY),
    ("brevo", told.brevo("hard_bounce", reason="550 5.2.1 disabled"), Bounce.OTHER),
    ("brevo", told.brevo("soft_bounce", reason="no answer"), Bounce.SOFT),
    ("postmark", told.postmark("Bounce", Type="HardBounce", Details="smtp;550 5.1.1 unknown"), Bounce.HARD),
    ("postmark", told.postmark("Bounce", Type="HardBounce", Details="smtp;550 5.7.1 refused"), Bounce.POLICY),
    ("postmark", told.postmark("Bounce", Type="Blocked", Details="smtp;550 5.1.1 listed"), Bounce.POLICY),
    ("postmark", told.postmark("Bounce", Type="SoftBounce"), Bounce.SOFT),
    ("postmark", told.postmark("Bounce", Type="DMARCPolicy"), Bounce.POLICY),
    (
        "mailjet",
        told.mailjet("bounce", hard_bounce=True, error_related_to="recipient", error="user unknown"),
        Bounce.HARD,
    ),
    ("mailjet", told.mailjet("bounce", hard_bounce=True, error_related_to="spam"), Bounce.POLICY),
    ("mailjet", told.mailjet("bounce", hard_bounce=False, error_related_to="recipient"), Bounce.SOFT),
]


@pytest.mark.parametrize(("vendor", "body", "bounce"), BOUNCES, ids=[f"{v}-{n}" for n, (v, *_) in enumerate(BOUNCES)])
def test_a_bounce_is_the_address_s_fault_only_when_it_says_so(vendor: str, body: Any, bounce: Bounce) -> None:
    [report] = READERS[vendor](body)
    assert report.bounce is bounce


@pytest.mark.parametrize(
    ("words", "bounce"),
    [
        ("550 5.1.1 x", Bounce.HARD),
        ("said: 550 5.1.10. Null MX", Bounce.HARD),
        ("5.1.2", Bounce.HARD),
        ("5.1.6 moved", Bounce.HARD),
        ("5.1.3 syntax", Bounce.OTHER),
        ("5.2.1 disabled", Bounce.OTHER),
        ("552 5.2.2 full", Bounce.SOFT),
        ("4.7.1 greylisted", Bounce.POLICY),
        ("4.4.7 expired", Bounce.SOFT),
        ("5.4.1 no route", Bounce.SOFT),
        ("5.6.0 content", Bounce.POLICY),
        ("host 15.1.1.1 said no", Bounce.OTHER),
        ("no code at all", Bounce.OTHER),
    ],
)
def test_the_enhanced_code_decides(words: str, bounce: Bounce) -> None:
    """RFC 3463, 3: only these four codes say that there is no such address."""
    assert bounce_class(words, otherwise=Bounce.OTHER) is bounce


@pytest.mark.parametrize("value", [None, "", "x", True, -1, 0, 1e300, float("inf"), float("nan"), [], "2026-13-01"])
def test_a_moment_that_is_none_is_left_out(value: Any) -> None:
    assert epoch(value) is None
    assert iso(value) is None
