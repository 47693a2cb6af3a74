"""Messages of Amazon SNS: signed with a real key here; the certificate comes from where the message says, if it may."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from providers import told

from console.providers.sns import MISSING, STRANGER, WRONG, Certificates, is_amazons, refusal

URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-abc.pem"


class Topic:
    """A key of SNS's and the certificate for it."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
        now = datetime.now(UTC)
        made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.key.public_key())
        made = made.serial_number(1).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
        self.pem = made.sign(self.key, SHA256()).public_bytes(Encoding.PEM)
        self.fetched: list[str] = []

    def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        return self.pem

    def signed(self, envelope: dict[str, Any], *, version: str = "2", names: tuple[str, ...] = ()) -> dict[str, Any]:
        """The envelope with its signature, made after Amazon's description and not by the code under test."""
        envelope = {"Timestamp": "2026-12-01T10:00:06.000Z", "SigningCertURL": URL, **envelope}
        fields = names or ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
        text = "".join(f"{name}\n{envelope[name]}\n" for name in fields if name in envelope)
        signature = self.key.sign(text.encode(), PKCS1v15(), SHA256() if version == "2" else SHA1())
        return {**envelope, "SignatureVersion": version, "Signature": base64.b64encode(signature).decode()}


@pytest.fixture(scope="module")
def topic() -> Topic:
    return Topic()


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("subject", [{}, {"Subject": "Amazon SES"}])
def test_a_message_of_amazons_is_taken(topic: Topic, version: str, subject: dict[str, str]) -> None:
    certificates = Certificates(topic.fetch)
    assert refusal(topic.signed({**told.ses("Delivery"), **subject}, version=version), certificates) is None


def test_a_confirmation_is_signed_over_other_fields(topic: Topic) -> None:
    envelope = {
        "Type": "SubscriptionConfirmation",
        "MessageId": "m-1",
        "Token": "t",
        "TopicArn": "arn:aws:sns:x",
        "Message": "You have chosen ...",
        "SubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
    }
    names = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
    assert refusal(topic.signed(envelope, names=names), Certificates(topic.fetch)) is None
    assert refusal(topic.signed(envelope), Certificates(topic.fetch)) == WRONG


@pytest.mark.parametrize("name", ["Message", "MessageId", "TopicArn", "Timestamp", "Type"])
def test_a_message_that_was_changed_is_refused(topic: Topic, name: str) -> None:
    envelope = topic.signed(told.ses("Delivery"))
    assert refusal({**envelope, name: envelope[name] + "x"}, Certificates(topic.fetch)) == WRONG


def test_another_key_is_refused(topic: Topic) -> None:
    assert refusal(Topic().signed(told.ses("Delivery")), Certificates(topic.fetch)) == WRONG


@pytest.mark.parametrize("change", [{"Signature": "***"}, {"Signature": "AAAA"}, {"SignatureVersion": "1"}])
def test_a_signature_that_is_none_is_refused(topic: Topic, change: dict[str, str]) -> None:
    assert refusal({**topic.signed(told.ses("Delivery")), **change}, Certificates(topic.fetch)) == WRONG


@pytest.mark.parametrize("name", ["Signature", "SigningCertURL", "SignatureVersion"])
def test_what_is_not_signed_is_refused_before_anything_is_fetched(name: str) -> None:
    envelope = Topic().signed(told.ses("Delivery"))
    del envelope[name]
    strange = Topic()
    assert refusal(envelope, Certificates(strange.fetch)) == MISSING
    assert strange.fetched == []


@pytest.mark.parametrize(
    "url",
    [
        "http://sns.eu-west-1.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com.example.com/x.pem",
        "https://example.com/sns.eu-west-1.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com@example.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com:8443/x.pem",
        "https://bucket.s3.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com/x",
        "file:///etc/passwd",
        "https://[",
    ],
)
def test_a_certificate_of_a_stranger_is_not_even_fetched(url: str) -> None:
    """Else the server would call any address that a message names, and believe whoever answers there."""
    mine = Topic()
    envelope = {**mine.signed(told.ses("Delivery")), "SigningCertURL": url}
    assert refusal(envelope, Certificates(mine.fetch)) == STRANGER
    assert mine.fetched == []


def test_a_certificate_is_fetched_once(topic: Topic) -> None:
    topic.fetched.clear()
    certificates = Certificates(topic.fetch)
    for number in range(3):
        assert refusal(topic.signed(told.ses("Delivery", message_id=f"m-{number}")), certificates) is None
    assert topic.fetched == [URL]


def test_amazons_own_addresses_are_known() -> None:
    assert is_amazons("https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription")
    assert is_amazons("https://sns.cn-north-1.amazonaws.com.cn/x.pem")
    assert json.loads(told.ses("Send")["Message"])["eventType"] == "Send"
