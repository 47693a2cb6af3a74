"""Every adapter with a server of its own to try it on: the same faults by name, each in the vendor's words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from peers import dialects
from peers.dialects import ses_error
from peers.sink import Sink
from peers.sink_script import Offer, Rule
from peers.vendor import SECRET, Dialect, Fault, Said, Vendor
from providers.drive import smtp

from console.providers import brevo, folder, mailjet, postmark, resend, ses
from console.providers.base import Provider
from console.providers.http_api import Api, HttpProvider

QUICK_S = 0.5


class Bench(Protocol):
    """One adapter and its server."""

    provider: Provider

    def fault(self, name: str) -> None:
        """Lets the fault of this name happen to the next message."""
        ...

    @property
    def tries(self) -> int:
        """How many times a message was handed over."""
        ...

    @property
    def taken(self) -> int:
        """How many messages the server took."""
        ...

    def stop(self) -> None:
        """Ends the server and its lines."""
        ...


# Before what the vendors agree on, what each says in its own words.
THROTTLED = Said(429, {"message": "slow down"}, {"Retry-After": "7"})
COMMON = {
    "take and hang": Fault("take", "hang"),
    "take and drop": Fault("take", "drop"),
    "take and say 500": Fault("take", said=Said(500, {"message": "oops"})),
    "take and cut the answer": Fault("take", "cut"),
    "throttle": Fault("skip", said=THROTTLED),
    "be down": Fault("skip", said=Said(503, b"<html>down</html>")),
    "be down for a while": Fault("skip", said=Said(503, b"", {"Retry-After": "30"})),
    "refuse": Fault("skip", said=Said(422, {"message": "to is wrong"})),
    "speak garbage": Fault("take", said=Said(200, b"\x00\xff<html>")),
    "redirect": Fault("skip", said=Said(302, b"", {"Location": "http://127.0.0.1:1/"})),
}
OWN: dict[str, dict[str, Fault]] = {
    "resend": {
        "be at the first one still": Fault(
            "skip", said=Said(409, {"name": "concurrent_idempotent_requests", "message": "in progress"})
        ),
        "know the key with another body": Fault(
            "skip", said=Said(409, {"name": "invalid_idempotent_request", "message": "different payload"})
        ),
        "be out of quota": Fault("skip", said=Said(429, {"name": "daily_quota_exceeded", "message": "quota"})),
        "be unsure of the account": Fault("skip", said=Said(403, {"message": "The domain is not verified"})),
    },
    "brevo": {
        "be out of quota": Fault("skip", said=Said(402, {"code": "not_enough_credits", "message": "credits"})),
        "be unsure of the account": Fault("skip", said=Said(403, {"code": "permission_denied", "message": "no"})),
    },
    "postmark": {
        "be out of quota": Fault("skip", said=Said(422, {"ErrorCode": 405, "Message": "out of credits"})),
        "be unsure of the account": Fault("skip", said=Said(422, {"ErrorCode": 412, "Message": "account pending"})),
        "refuse": Fault("skip", said=Said(422, {"ErrorCode": 406, "Message": "to is wrong: inactive"})),
    },
    "mailjet": {
        "be unsure of the account": Fault("skip", said=Said(403, {"ErrorMessage": "Operation not allowed"})),
        "refuse": Fault(
            "skip",
            said=Said(
                400,
                {"Messages": [{"Status": "error", "Errors": [{"StatusCode": 400, "ErrorMessage": "to is wrong"}]}]},
            ),
        ),
        "refuse within a 200": Fault(
            "skip",
            said=Said(
                200,
                {"Messages": [{"Status": "error", "Errors": [{"StatusCode": 400, "ErrorMessage": "to is wrong"}]}]},
            ),
        ),
    },
    "ses": {
        "throttle": Fault("skip", said=ses_error(429, "TooManyRequestsException", "Maximum sending rate exceeded.")),
        "be out of quota": Fault(
            "skip", said=ses_error(429, "TooManyRequestsException", "Daily message quota exceeded.")
        ),
        "be unsure of the account": Fault("skip", said=ses_error(400, "SendingPausedException", "paused")),
        "be unsure of the sender": Fault(
            "skip", said=ses_error(400, "MessageRejected", "Email address is not verified.")
        ),
        "refuse": Fault("skip", said=ses_error(400, "MessageRejected", "to is wrong")),
    },
}


@dataclass
class HttpBench:
    """An adapter of a vendor's HTTP API."""

    kind: str
    provider: Any
    vendor: Vendor

    def fault(self, name: str) -> None:
        own = OWN[self.kind].get(name)
        self.vendor.faults.append(own or COMMON[name])

    @property
    def tries(self) -> int:
        return self.vendor.sends

    @property
    def taken(self) -> int:
        return len(self.vendor.taken)

    def stop(self) -> None:
        self.vendor.stop()


SMTP_FAULTS = {
    "take and hang": Rule(stage="DOT", times=1, then="ignore", accepts=True),
    "take and drop": Rule(stage="DOT", times=1, then="close", accepts=True),
    "take and cut the answer": Rule(stage="DOT", times=1, reply=b"250 2.0", then="close", accepts=True),
    "speak garbage": Rule(stage="DOT", times=1, reply=b"\x00\xff<html>\r\n", accepts=True),
    "throttle": Rule(stage="RCPT", times=1, reply="450 4.2.1 slow down"),
    "be down for a while": Rule(stage="DOT", times=1, reply="451 4.3.0 later"),
    "refuse": Rule(stage="RCPT", times=1, reply="550 5.1.1 to is wrong"),
    "be unsure of the account": Rule(stage="MAIL", times=1, reply="530 5.7.0 sign in first"),
}


@dataclass
class SmtpBench:
    """The adapter for SMTP servers."""

    provider: Any
    sink: Sink
    kind: str = "smtp"

    def fault(self, name: str) -> None:
        self.sink.script.append(SMTP_FAULTS[name])

    @property
    def tries(self) -> int:
        return len(self.sink.datas) or self.sink.stages().count("MAIL")

    @property
    def taken(self) -> int:
        return len(self.sink.accepted)

    def stop(self) -> None:
        self.sink.refuse_connections()
        self.sink.cut_connections()


@dataclass
class FolderBench:
    """The adapter that writes files; it has no server, so nothing goes wrong but the disk."""

    provider: Any
    path: Path
    kind: str = "file"
    tries: int = field(default=1)

    def fault(self, name: str) -> None:
        raise AssertionError(f"no {name} in a folder")

    @property
    def taken(self) -> int:
        return len(list(self.path.glob("*.eml")))

    def stop(self) -> None:
        raise AssertionError("a folder does not stop")


@dataclass(frozen=True)
class Kind:
    """How to make an adapter of a kind."""

    dialect: Callable[[], Dialect]
    api: Callable[[str], Api]


HTTP_KINDS = {
    "resend": Kind(dialects.Resend, lambda secret: resend.Resend(api_key=secret)),
    "brevo": Kind(dialects.Brevo, lambda secret: brevo.Brevo(api_key=secret)),
    "postmark": Kind(dialects.Postmark, lambda secret: postmark.Postmark(token=secret, stream="outbound")),
    "mailjet": Kind(dialects.Mailjet, lambda secret: mailjet.Mailjet(api_key="public", secret_key=secret)),
}
KINDS = (*HTTP_KINDS, "ses", "smtp", "file")


@contextmanager
def bench(kind: str, folder_path: Path, *, secret: str = SECRET) -> Iterator[Any]:
    """Gives an adapter with a server of its own; it waits half a second for answers."""
    if kind == "smtp":
        offer = Offer(users={"ann": SECRET}) if secret != SECRET else Offer()
        with Sink(offer=offer) as sink:
            url = sink.url.replace(SECRET, secret)
            yield SmtpBench(smtp(url, SMTP_DOT_TIMEOUT_SECONDS=str(QUICK_S)), sink)
    elif kind == "file":
        yield FolderBench(folder.Folder("outbox", folder=folder_path), folder_path)
    elif kind == "ses":
        with Vendor(dialects.Ses()) as vendor:
            provider = ses.Ses(
                "ses",
                region="eu-west-1",
                access_key=secret,
                secret_key="s" * 40,
                endpoint_url=vendor.url,
                timeout_s=QUICK_S,
            )
            yield HttpBench(kind, provider, vendor)
    else:
        made = HTTP_KINDS[kind]
        with Vendor(made.dialect()) as vendor:
            provider = HttpProvider(kind, made.api(secret), base_url=vendor.url, secrets=(secret,), timeout_s=QUICK_S)
            yield HttpBench(kind, provider, vendor)
