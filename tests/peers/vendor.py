"""VENDOR: a provider with an HTTP API on loopback, in threads of the test's process, with faults on demand.

It takes messages as the vendor does whose Dialect it speaks (dialects.py): it knows its keys, for as long as the vendor
does, and finds messages by tag. A fault is used up by one request to send.

    with Vendor(RESEND) as vendor:
        vendor.faults.append(Fault("take", then="drop"))
        ... send to vendor.url ...
        assert len(vendor.taken) == 1 == vendor.sends
"""

import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Protocol, Self
from urllib.parse import parse_qsl, urlsplit

SECRET = "key-of-the-account"


class Asked(NamedTuple):
    """A request as it came; names of headers in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    fields: dict[str, Any]


class Said(NamedTuple):
    """An answer."""

    status: int
    fields: Any = None
    headers: Mapping[str, str] = {}


@dataclass(frozen=True)
class Taken:
    """A message that the vendor took."""

    id: str
    key: str
    tag: str
    recipient: str
    at: float
    asked: Asked


@dataclass(frozen=True)
class Fault:
    """What happens to the next request to send.

    First: `take` the message as usual, or `skip` it. Then: `answer` with `said` (take: the usual one if None), `hang`
    until the server stops, `drop` the line without a word, `cut` the line in the middle of the answer's body.
    """

    first: Literal["take", "skip"]
    then: Literal["answer", "hang", "drop", "cut"] = "answer"
    said: Said | None = None


class Dialect(Protocol):
    """One vendor's words. `window_s` 0: it knows no keys."""

    send_path: str
    window_s: float

    def is_known(self, asked: Asked) -> bool:
        """Whether the request carries SECRET."""
        ...

    def key(self, asked: Asked) -> str: ...

    def tag(self, asked: Asked) -> str: ...

    def recipient(self, asked: Asked) -> str: ...

    def took(self, taken: Taken) -> Said: ...

    def met_again(self, taken: Taken) -> Said:
        """The answer to a key that is remembered."""
        ...

    def listed(self, taken: list[Taken], asked: Asked) -> Said | None:
        """The answer to any request but one to send; None for one that the vendor does not know."""
        ...

    def stranger(self) -> Said:
        """The answer to a wrong key."""
        ...


class _Server(ThreadingHTTPServer):
    """Remembers its lines, to be able to cut them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any):
        self.lines: list[socket.socket] = []
        super().__init__(*args)

    def get_request(self) -> tuple[socket.socket, Any]:
        line, address = super().get_request()
        self.lines.append(line)
        return line, address


@dataclass
class Vendor:
    """The server. Listens from the start of its `with` block until its end, on a free port."""

    dialect: Dialect
    faults: list[Fault] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    later_s: float = 0.0  # how far the vendor's clock is ahead
    # What every request but one to send is answered with; None: as usual.
    answers_all: Said | None = None

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._is_up = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True, name="vendor").start()
        self.port = self._server.server_address[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the server and all its lines; connecting is refused from now on."""
        if self._is_up:
            self._is_up = False
            self._stopping.set()
            self._server.shutdown()
            self._server.server_close()
            for line in self._server.lines:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sends(self) -> int:
        """How many requests to send have come."""
        return sum(each.method == "POST" and each.path == self.dialect.send_path for each in self.asked)

    @property
    def questions(self) -> int:
        """How many other requests have come."""
        return len(self.asked) - self.sends

    def _hear(self, asked: Asked) -> tuple[Said, str]:
        """Takes one request; gives the answer and how it goes out."""
        with self._lock:
            self.asked.append(asked)
            is_send = asked.method == "POST" and asked.path == self.dialect.send_path
            if not is_send:
                return self._answer(asked), "answer"
            fault = self.faults.pop(0) if self.faults else Fault("take")
            if fault.first == "skip":
                return fault.said or Said(500), fault.then
            usual = self._take(asked) if self.dialect.is_known(asked) else self.dialect.stranger()
            return fault.said or usual, fault.then

    def _answer(self, asked: Asked) -> Said:
        if self.answers_all is not None:
            return self.answers_all
        if not self.dialect.is_known(asked):
            return self.dialect.stranger()
        return self.dialect.listed(self.taken, asked) or Said(404, {"message": "no such thing"})

    def _take(self, asked: Asked) -> Said:
        now, key = time.monotonic() + self.later_s, self.dialect.key(asked)
        for each in self.taken:
            if key and each.key == key and now - each.at < self.dialect.window_s:
                return self.dialect.met_again(each)
        tag, recipient = self.dialect.tag(asked), self.dialect.recipient(asked)
        taken = Taken(f"id-{len(self.taken) + 1}", key, tag, recipient, now, asked)
        self.taken.append(taken)
        return self.dialect.took(taken)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._serve()

            def do_POST(self) -> None:
                self._serve()

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                fields = json.loads(body) if body else {}
                said, then = vendor._hear(
                    Asked(self.command, parts.path, dict(parse_qsl(parts.query)), headers, fields)
                )
                if then == "hang":
                    vendor._stopping.wait(30)
                if then in ("hang", "drop"):
                    self.close_connection = True
                    return
                self._say(said, is_cut=then == "cut")

            def _say(self, said: Said, *, is_cut: bool) -> None:
                body = said.fields if isinstance(said.fields, bytes) else json.dumps(said.fields or {}).encode()
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if is_cut else body)
                self.close_connection = self.close_connection or is_cut or vendor._stopping.is_set()

        return Handler
