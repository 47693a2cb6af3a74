"""Whether a message of Amazon SNS is Amazon's: its signature, and the certificate that it names.

Source: docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html. A good signature proves that it comes
from SNS, not that it comes from our topic: whoever asks compares TopicArn.
"""

import base64
import binascii
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256

from console.providers.reports import text_of

_HOST = re.compile(r"sns\.[a-z0-9-]{3,40}\.amazonaws\.com(\.cn)?")
_NOTIFICATION = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
_CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
CONFIRMATIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")
FETCH_TIMEOUT_S = 5.0
_LARGEST_BYTES = 64 * 1024
_MOST_KEPT = 20

MISSING = "it is not signed as Amazon SNS signs"
WRONG = "the signature is wrong"
STRANGER = "its certificate is not Amazon's"

Fetch = Callable[[str], bytes]


def fetch(url: str) -> bytes:
    """Gets a small document; raises httpx.HTTPError. Follows nothing."""
    with httpx.Client(timeout=FETCH_TIMEOUT_S, follow_redirects=False) as client:
        answer = client.get(url)
    answer.raise_for_status()
    return answer.content[:_LARGEST_BYTES]


class Certificates:
    """The certificates that SNS has signed with lately, by their address."""

    def __init__(self, fetch: Fetch = fetch):
        self._fetch = fetch
        self._lock = threading.Lock()
        self._kept: dict[str, bytes] = {}

    def get(self, url: str) -> bytes:
        """Gives the certificate as PEM. Raises: httpx.HTTPError when it can't be fetched."""
        found = self._kept.get(url)
        if found is None:
            found = self._fetch(url)
            with self._lock:
                while len(self._kept) >= _MOST_KEPT:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[url] = found
        return found

    def visit(self, url: str) -> None:
        """Opens an address of Amazon's, such as the one that confirms a subscription. Raises: httpx.HTTPError."""
        self._fetch(url)


def is_amazons(url: str) -> bool:
    """Tells whether an address is one of SNS's own; anything else is never fetched."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and parts.netloc == parts.hostname and bool(_HOST.fullmatch(parts.netloc))
    except ValueError:
        return False


def refusal(envelope: Mapping[str, Any], certificates: Certificates) -> str | None:
    """Gives why the message is refused; None: it is Amazon's.

    Raises: httpx.HTTPError when the certificate can't be fetched: then nothing is known.
    """
    url, signature = text_of(envelope.get("SigningCertURL")), text_of(envelope.get("Signature"))
    version = envelope.get("SignatureVersion")
    if not (url and signature) or version not in ("1", "2"):
        return MISSING
    if not is_amazons(url) or not url.endswith(".pem"):
        return STRANGER
    try:
        key = x509.load_pem_x509_certificate(certificates.get(url)).public_key()
        given = base64.b64decode(signature, validate=True)
    except (ValueError, binascii.Error):
        return WRONG
    if not isinstance(key, RSAPublicKey):
        return WRONG
    try:
        # Version 1 is SHA-1, which SNS still uses unless the topic asks for 2.
        key.verify(given, signed_text(envelope), PKCS1v15(), SHA256() if version == "2" else SHA1())
    except InvalidSignature:
        return WRONG
    return None


def signed_text(envelope: Mapping[str, Any]) -> bytes:
    """Gives what the signature covers: names and values of certain fields, one a line."""
    names = _CONFIRMATION if envelope.get("Type") in CONFIRMATIONS else _NOTIFICATION
    lines = []
    for name in names:
        value = envelope.get(name)
        if isinstance(value, str):
            lines += [name, value]
    return "".join(f"{line}\n" for line in lines).encode()
