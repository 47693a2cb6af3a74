"""SINK: a scripted SMTP server on loopback, in threads of the test's process. What it says when is a list of Rules.

It is no mail program: it is as strict as it can be about what it is sent (see `violations`) and says whatever it is
told to, garbage and silence too. Rules and events are in sink_script.py, the
dialogue of one connection is in sink_session.py.

    with Sink(Rule(stage="DOT", recipient="c@example.com", times=1, reply="451 4.3.0 later")) as sink:
        ... send to sink.url ...
        assert [each.recipient for each in sink.accepted] == ["a@example.com", "b@example.com"]
"""

import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Self

import trustme
from peers.sink_script import Accepted, Data, Event, Offer, Rule
from peers.sink_session import Session


class Sink:
    """The server. Listens from the start of its `with` block until the block's end, on a free port."""

    def __init__(self, *script: Rule, offer: Offer | None = None, is_listening: bool = True):
        self.script: list[Rule] = list(script)
        self.offer = offer or Offer()
        self.events: list[Event] = []
        self.accepted: list[Accepted] = []
        self.datas: list[Data] = []
        self.violations: list[str] = []
        self.port = 0
        self.connections_made = 0
        self.open_most = 0
        self.stopping = threading.Event()
        self._begins_listening = is_listening
        self._used: Counter[tuple[int, str]] = Counter()
        self._changed = threading.Condition()
        self._sessions: dict[int, Session] = {}
        self._threads: list[threading.Thread] = []
        self._bound: socket.socket | None = None

    def __enter__(self) -> Self:
        self._bind()
        if self._begins_listening:
            self.accept_connections()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._unbind()
        self.cut_connections()
        for thread in self._threads:
            thread.join(5)

    @property
    def url(self) -> str:
        """Where the server is, as SENDONCE_SMTP_URL takes it."""
        user = next((f"{name}:{password}@" for name, password in self.offer.users.items()), "")
        return f"{'smtps' if self.offer.tls == 'implicit' else 'smtp'}://{user}127.0.0.1:{self.port}"

    def accept_connections(self) -> None:
        """Opens the port."""
        assert self._bound
        self._bound.listen(128)
        thread = threading.Thread(target=self._accept, args=(self._bound,), daemon=True, name="sink")
        self._threads.append(thread)
        thread.start()

    def refuse_connections(self) -> None:
        """Closes the port: connecting is refused. It stays bound, so that nobody else gets it. Open lines go on."""
        self._unbind()
        self._bind()

    def cut_connections(self) -> None:
        """Ends all open lines at once, without a word."""
        with self._changed:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.cut()

    def wait_for(self, is_so: Callable[["Sink"], bool], *, timeout_s: float = 10.0) -> None:
        """Waits until something is so; asks again after each event. Raises: TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: is_so(self), timeout_s):
                raise TimeoutError(
                    f"not so after {timeout_s} s; {len(self.accepted)} accepted, {len(self.events)} events"
                )

    def stages(self, *, connection: int | None = None) -> list[str]:
        """The stages that the client went through, in order, of one connection or of all."""
        return [each.stage for each in self.events if connection in (None, each.connection)]

    def tries(self, stage: str, recipient: str) -> list[Event]:
        """What happened at a stage for a recipient, in order."""
        return [each for each in self.events if each.stage == stage and recipient in each.recipients]

    @cached_property
    def authority(self) -> trustme.CA:
        """The made-up authority behind the server's certificate."""
        return trustme.CA()

    @cached_property
    def tls_context(self) -> ssl.SSLContext:
        """The server's side of TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(self.offer.certificate_name).configure_cert(context)
        return context

    # What the sessions call, from their threads.

    def note(self, event: Event) -> Event:
        """Logs an event."""
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()
        return event

    def rule_for(self, event: Event) -> Rule | None:
        """Gives the rule that the event falls under, and counts it."""
        with self._changed:
            for number, rule in enumerate(self.script):
                if not rule.fits(event):
                    continue
                key = (number, event.recipient or "") if rule.times_each is not None else (number, "")
                self._used[key] += 1
                limit = rule.times if rule.times_each is None else rule.times_each
                if self._used[key] > rule.skip and (limit is None or self._used[key] <= rule.skip + limit):
                    return rule
        return None

    def note_data(self, event: Event, message_id: str) -> None:
        """Logs a message whose dot has arrived."""
        self.datas.extend(Data(each, message_id, event.wire, event.connection, event.at) for each in event.recipients)

    def note_accepted(self, event: Event, message_id: str) -> None:
        """Logs a message that is taken, just before the client is told."""
        with self._changed:
            self.accepted.extend(Accepted(each, message_id, event.wire) for each in event.recipients)
            self._changed.notify_all()

    def end(self, session: Session) -> None:
        """Forgets a line that is closed."""
        with self._changed:
            self._sessions.pop(session.number, None)
            self._changed.notify_all()

    def _bind(self) -> None:
        self._bound = socket.socket()
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._bound.bind(("127.0.0.1", self.port))
        self.port = self._bound.getsockname()[1]

    def _unbind(self) -> None:
        assert self._bound
        with suppress(OSError):
            self._bound.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept()
        self._bound.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            with self._changed:
                self.connections_made += 1
                session = Session(self, line, self.connections_made)
                limit = self.offer.connections_limit
                session.is_too_many = limit is not None and len(self._sessions) >= limit
                self._sessions[session.number] = session
                self.open_most = max(self.open_most, len(self._sessions))
            thread = threading.Thread(target=session.run, daemon=True, name=f"sink-{session.number}")
            self._threads.append(thread)
            thread.start()
