"""Providers with an HTTP API: one request for one message, and how far it had come when the line broke.

What is special about a vendor (addresses, fields, words) is an Api, in a module of its own.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx

from console.providers.base import (
    Answer,
    Capabilities,
    Deferred,
    Finding,
    Message,
    NoAnswer,
    Refused,
    Reply,
    Trouble,
    Unknown,
    Untouched,
)
from console.providers.call_channel import Call, CallChannel
from console.providers.http_replies import Response
from console.providers.recent_check import RecentCheck

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
_BODY_LIMIT = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to ask; `path` is put behind the base URL."""

    path: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    json: Any = None


class Api(Protocol):
    """One vendor's API. Pure: it makes requests and reads responses, and touches no network."""

    capabilities: Capabilities

    def send(self, message: Message) -> Request | Refused:
        """Gives the request that hands the message over."""
        ...

    def judge(self, response: Response) -> Answer: ...

    def look_up(self, message: Message) -> Request | None:
        """Gives the question whether the message was accepted; None when the vendor can't be asked."""
        ...

    def found(self, response: Response, message: Message) -> Finding: ...

    def ask(self) -> Request:
        """Gives a question that only a known account gets answered."""
        ...

    def checked(self, response: Response) -> Trouble | None: ...


@dataclass(frozen=True, slots=True)
class Broken:
    """No status came. `reached`: connect (nothing was sent), request (cut within the request), response (all sent)."""

    reached: str
    reason: str


class HttpProvider:
    """See providers.base.Provider."""

    def __init__(
        self, name: str, api: Api, *, base_url: str, secrets: tuple[str, ...], timeout_s: float = ANSWER_TIMEOUT_S
    ):
        self.name = name
        self.capabilities = api.capabilities
        self._api = api
        self._base_url = base_url.rstrip("/")
        self._secrets = tuple(secret.encode() for secret in secrets if len(secret) >= 6)
        self._timeout_s = timeout_s
        # Reading the authorities' certificates takes 20 ms and more; once is enough.
        self._tls = httpx.create_ssl_context()
        self._recent = RecentCheck(self.check)

    def connect(self) -> CallChannel | Trouble:
        trouble = self._recent.trouble()
        if trouble is not None:
            return trouble
        # The thread itself gives up first, and knows better why.
        limit_s = CONNECT_TIMEOUT_S + self._timeout_s + 1.0
        return CallChannel(_HttpCaller(self, self._client()), timeout_s=limit_s)

    def check(self) -> Trouble | None:
        with self._client() as client:
            outcome = self.exchange(client, self._api.ask())
        if isinstance(outcome, Broken):
            return Trouble(outcome.reason)
        return self._api.checked(outcome)

    def find(self, message: Message) -> Finding:
        request = self._api.look_up(message)
        if request is None:
            return Unknown("the provider can't be asked for a message")
        with self._client() as client:
            outcome = self.exchange(client, request)
        if isinstance(outcome, Broken):
            return Unknown(outcome.reason)
        if not outcome.is_complete:
            return Unknown("the answer was cut off")
        return self._api.found(outcome, message)

    def hand_over(self, client: httpx.Client, request: Request) -> Answer:
        """Makes the one request and judges what came."""
        outcome = self.exchange(client, request)
        if isinstance(outcome, Response):
            answer = self._api.judge(outcome)
            if isinstance(answer, Untouched):
                self._recent.forget()
            return answer
        match outcome.reached:
            case "connect":
                self._recent.forget()
                return Untouched(outcome.reason, Trouble(outcome.reason))
            case "request":
                return Deferred(Reply("request", text=outcome.reason))
            case _:
                return NoAnswer(Reply("response", text=outcome.reason))

    def exchange(self, client: httpx.Client, asked: Request) -> Response | Broken:
        """Makes one request; retries nothing, follows nothing."""
        trace = _Trace()
        request = client.build_request(
            asked.method,
            self._base_url + asked.path,
            headers=dict(asked.headers),
            params=dict(asked.query) or None,
            json=asked.json,
            extensions={"trace": trace},
        )
        give_up_at = time.monotonic() + self._timeout_s
        try:
            answer = client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return Broken(trace.reached, _words(error))
        try:
            body, is_complete = _read(answer, give_up_at)
        finally:
            answer.close()
        for secret in self._secrets:
            body = body.replace(secret, b"***")
        return Response(answer.status_code, dict(answer.headers), body, is_complete)

    def _client(self) -> httpx.Client:
        return httpx.Client(
            verify=self._tls,
            timeout=httpx.Timeout(self._timeout_s, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            headers={"User-Agent": "sendonce", "Accept-Encoding": "identity", "Accept": "application/json"},
        )


class _HttpCaller:
    """See call_channel.Caller: one kept connection."""

    def __init__(self, provider: HttpProvider, client: httpx.Client):
        self._provider = provider
        self._client = client

    def prepare(self, message: Message) -> Call | Refused:
        request = self._provider._api.send(message)
        if isinstance(request, Refused):
            return request
        return lambda: self._provider.hand_over(self._client, request)

    def close(self) -> None:
        self._client.close()


class _Trace:
    """Hears from httpcore how far a request has come."""

    def __init__(self):
        self.reached = "connect"

    def __call__(self, event: str, details: Mapping[str, Any]) -> None:
        step = event.partition(".")[2]
        # A proxy is asked first, by CONNECT: that is no request to the provider.
        if step == "send_request_headers.started" and details["request"].method != b"CONNECT":
            self.reached = "request"
        elif step == "send_request_body.complete" and self.reached == "request":
            self.reached = "response"


def _read(answer: httpx.Response, give_up_at: float) -> tuple[bytes, bool]:
    """Gives the body, and whether it is whole."""
    body = b""
    try:
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > _BODY_LIMIT or time.monotonic() > give_up_at:
                return body[:_BODY_LIMIT], False
    except (httpx.HTTPError, OSError):
        return body, False
    return body, True


def _words(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no connection in time" if isinstance(error, httpx.ConnectTimeout) else "no answer in time"
    return str(error) or type(error).__name__
