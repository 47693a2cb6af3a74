"""Signatures cover bytes: Standard Webhooks, a plain HMAC, Basic."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from console.errors import InvalidInput
from console.inbox import signatures
from console.inbox.signatures import Scheme, check_secret, refusal

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
BODY = b'{"b": 1, "a":"Z\\u00fcrich","n":1.0}\r\n'
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
OTHER = "whsec_" + base64.b64encode(b"fedcba9876543210fedcba9876543210").decode()


def _signed(
    body: bytes = BODY, *, secret: str = SECRET, at: datetime = NOW, event_id: str = "msg_1", name: str = "webhook"
) -> dict[str, str]:
    """The headers that the specification's own library makes."""
    signature = Webhook(secret).sign(msg_id=event_id, timestamp=at, data=body.decode())
    return {
        f"{name}-id": event_id,
        f"{name}-timestamp": str(int(at.timestamp())),
        f"{name}-signature": signature,
    }


def _standard(headers: dict[str, str], body: bytes = BODY, *, secrets: tuple[str, ...] = (SECRET,)) -> str | None:
    scheme = Scheme(kind="standard_webhooks", secrets=secrets)
    return refusal(scheme, headers=headers, body=body, now=NOW)


def test_what_the_specifications_library_signs_is_taken() -> None:
    """C58 (a)."""
    assert _standard(_signed()) is None
    assert _standard(_signed(name="svix")) is None


@pytest.mark.parametrize(
    "body", [BODY[:-1], BODY.replace(b"1.0", b"1"), BODY + b" ", b'{"b":1,"a":"Z\xc3\xbcrich","n":1.0}']
)
def test_a_body_that_differs_in_a_byte_is_refused(body: bytes) -> None:
    """C58 (b, c)."""
    assert _standard(_signed(), body) == signatures.WRONG


def test_ten_minutes_old_or_early_is_refused_and_four_are_not() -> None:
    """C58 (d, g)."""
    assert _standard(_signed(at=NOW - timedelta(minutes=10))) == signatures.TOO_OLD
    assert _standard(_signed(at=NOW + timedelta(minutes=10))) == signatures.TOO_NEW
    assert _standard(_signed(at=NOW - timedelta(seconds=301))) == signatures.TOO_OLD
    for minutes in (-4, 4):
        assert _standard(_signed(at=NOW + timedelta(minutes=minutes))) is None


def test_the_moment_and_the_id_are_signed_too() -> None:
    later = {**_signed(at=NOW - timedelta(minutes=10)), "webhook-timestamp": str(int(NOW.timestamp()))}
    assert _standard(later) == signatures.WRONG
    assert _standard({**_signed(), "webhook-id": "msg_2"}) == signatures.WRONG


@pytest.mark.parametrize("left_out", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_no_signature_is_refused(left_out: str) -> None:
    """C58 (e)."""
    assert _standard({name: value for name, value in _signed().items() if name != left_out}) == signatures.MISSING


def test_the_secret_of_somebody_else_is_refused() -> None:
    """C58 (f)."""
    assert _standard(_signed(secret=OTHER)) == signatures.WRONG


def test_while_secrets_change_both_are_good_on_either_side() -> None:
    old, new = _signed(secret=OTHER), _signed()
    assert _standard(old, secrets=(SECRET, OTHER)) is None
    assert _standard(new, secrets=(SECRET, OTHER)) is None
    both = {**new, "webhook-signature": f"{old['webhook-signature']} {new['webhook-signature']}"}
    assert _standard(both) is None


@pytest.mark.parametrize("beside", ["nonsense", "v1,%%%", "v1", "v1,", "v1a,AAAA", ",", "v1,\u00e9", "v2,zz v1,zz"])
def test_an_odd_entry_beside_the_good_one_changes_nothing(beside: str) -> None:
    headers = _signed()
    for signature in (f"{beside} {headers['webhook-signature']}", f"{headers['webhook-signature']} {beside}"):
        assert _standard({**headers, "webhook-signature": signature}) is None
    assert _standard({**headers, "webhook-signature": beside}) == signatures.WRONG


@pytest.mark.parametrize("moment", ["nan", "1e9", "-1", "", "9" * 30, "\u0661", "1804068000.5", "x" * 1000])
def test_a_moment_that_is_none_is_refused(moment: str) -> None:
    assert _standard({**_signed(), "webhook-timestamp": moment}) in {signatures.WRONG, signatures.MISSING}


def test_a_body_that_is_no_utf8_is_verified_by_its_bytes() -> None:
    body = b"\xff\x00\xfe"
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    moment = str(int(NOW.timestamp()))
    digest = hmac.new(key, b"msg_1." + moment.encode() + b"." + body, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(digest).decode()
    headers = {"webhook-id": "msg_1", "webhook-timestamp": moment, "webhook-signature": signature}
    assert _standard(headers, body) is None
    assert _standard(headers, body + b"\x00") == signatures.WRONG


def test_a_secret_that_is_empty_verifies_nothing() -> None:
    moment = str(int(NOW.timestamp()))
    digest = hmac.new(b"", b"msg_1." + moment.encode() + b"." + BODY, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(digest).decode()
    headers = {"webhook-id": "msg_1", "webhook-timestamp": moment, "webhook-signature": signature}
    for secret in ("whsec_", "", "whsec_%%%"):
        assert _standard(headers, secrets=(secret,)) == signatures.WRONG
    assert _standard(headers, secrets=()) == signatures.WRONG


# Of GitHub's documentation, "Validating webhook deliveries".
_GITHUB = (
    "It's a Secret to Everybody",
    b"Hello, World!",
    "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
)


def _hmac(
    signature: str, *, prefix: str = "", encoding: str = "hex", secrets: tuple[str, ...] = (_GITHUB[0],)
) -> str | None:
    scheme = Scheme(kind="hmac_sha256", secrets=secrets, header="X-Signature", prefix=prefix, encoding=encoding)
    return refusal(scheme, headers={"x-signature": signature}, body=_GITHUB[1], now=NOW)


def test_a_plain_hmac_is_read_in_hex_and_base64_with_and_without_a_prefix() -> None:
    as_base64 = base64.b64encode(bytes.fromhex(_GITHUB[2])).decode()
    assert _hmac(_GITHUB[2]) is None
    assert _hmac(_GITHUB[2].upper()) is None
    assert _hmac(f"sha256={_GITHUB[2]}", prefix="sha256=") is None
    assert _hmac(as_base64, encoding="base64") is None
    assert _hmac(as_base64.rstrip("="), encoding="base64") is None
    assert _hmac(_GITHUB[2], secrets=("new", _GITHUB[0])) is None


@pytest.mark.parametrize(
    "signature", [_GITHUB[2][:-1], _GITHUB[2][:-1] + "0", "0" * 64, "zz", "sha256=" + _GITHUB[2], "\u00e9" * 64]
)
def test_a_wrong_plain_hmac_is_refused(signature: str) -> None:
    assert _hmac(signature) == signatures.WRONG


def test_a_plain_hmac_without_its_prefix_or_header_is_refused() -> None:
    assert _hmac(_GITHUB[2], prefix="sha256=") == signatures.WRONG
    assert _hmac("") == signatures.MISSING


def _basic(credentials: str, *, kind: str = "Basic") -> str | None:
    scheme = Scheme(kind="basic", secrets=("shop:p\u00e4ss:word",))
    encoded = base64.b64encode(credentials.encode()).decode()
    return refusal(scheme, headers={"authorization": f"{kind} {encoded}"}, body=b"", now=NOW)


def test_basic_wants_user_and_password() -> None:
    assert _basic("shop:p\u00e4ss:word") is None
    assert _basic("shop:p\u00e4ss:word", kind="basic") is None
    for wrong in ("shop:pass", "shop:", "", "SHOP:p\u00e4ss:word"):
        assert _basic(wrong) == (signatures.WRONG_PASSWORD if wrong else signatures.NO_PASSWORD)
    assert _basic("shop:p\u00e4ss:word", kind="Bearer") == signatures.NO_PASSWORD
    scheme = Scheme(kind="basic", secrets=("a:b",))
    assert refusal(scheme, headers={}, body=b"", now=NOW) == signatures.NO_PASSWORD
    assert refusal(scheme, headers={"authorization": "Basic %%%"}, body=b"", now=NOW) == signatures.WRONG_PASSWORD


def test_without_a_scheme_the_address_alone_is_the_secret() -> None:
    assert refusal(Scheme(kind="none"), headers={}, body=b"", now=NOW) is None


@pytest.mark.parametrize(
    ("kind", "secret"),
    [("standard_webhooks", "whsec_"), ("standard_webhooks", "whsec_%%%"), ("basic", "nocolon"), ("basic", ":x"),
     ("basic", "x:"), ("hmac_sha256", "  ")],
)  # fmt: skip
def test_a_secret_that_the_scheme_cannot_use_is_refused(kind: str, secret: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_secret(kind, secret)
    assert refused.value.field == "secret"
