"""A channel for providers that take a message in one call (an HTTP request, a file): the call has a thread of its own.

`begin` only prepares the call, `finish` hands it to the thread, and a pair of sockets wakes the pump when the thread
has an answer. Whatever happens after `finish`, the call is made at most once.
"""

import math
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Protocol

import structlog

from console.providers.base import Answer, Message, NoAnswer, Ready, Refused, Reply, Untouched

log = structlog.get_logger(__name__)

Call = Callable[[], Answer]
_READY = Ready()


class Caller(Protocol):
    """What makes the calls of one channel; `prepare` is called by the pump, the rest by the channel's thread."""

    def prepare(self, message: Message) -> Call | Refused:
        """Gives a call that hands the message over: blocks, makes one request, never raises for the network's sake."""
        ...

    def close(self) -> None: ...


class CallChannel:
    """See providers.base.Channel."""

    def __init__(self, caller: Caller, *, timeout_s: float):
        self._caller = caller
        self._timeout_s = timeout_s
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._fileno = self._reading.fileno()
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._answers: deque[Answer] = deque()
        self._thread: threading.Thread | None = None
        self._prepared: Call | None = None
        self._is_open = True
        self._is_called = False
        self.deadline = math.inf

    def fileno(self) -> int:
        return self._fileno

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def wants_write(self) -> bool:
        return False

    def begin(self, message: Message, now: float) -> Answer | Ready | None:
        try:
            call = self._caller.prepare(message)
        except (ValueError, LookupError) as error:
            return Refused(Reply("compose", text=f"the message can't be put into a request: {error}"))
        if isinstance(call, Refused):
            return call
        self._prepared = call
        return _READY

    @property
    def can_follow(self) -> bool:
        return False

    def follow(self, message: Message) -> bool:
        return False

    def hear(self, now: float) -> Answer | Ready | None:
        return None

    def advance(self, now: float) -> Answer | Ready | None:
        with suppress(BlockingIOError):
            self._reading.recv(64)
        if not self._answers:
            return None
        answer = self._answers.popleft()
        self._is_called = False
        self.deadline = math.inf
        if isinstance(answer, Untouched):
            # The next channel first finds out whether the provider takes anything from us.
            self.close()
        return answer

    def finish(self, now: float) -> Answer | None:
        assert self._prepared is not None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="provider call", daemon=True)
            self._thread.start()
        self._is_called = True
        self.deadline = now + self._timeout_s
        self._calls.put(self._prepared)
        self._prepared = None
        return None

    def time_out(self) -> Answer | None:
        was_prepared, was_called = self._prepared is not None, self._is_called
        self.close()
        if was_called:
            return NoAnswer(Reply("response", text="no answer in time"))
        return Untouched("given up before the hand-over") if was_prepared else None

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = self._is_called = False
        self._prepared = None
        self.deadline = math.inf
        self._reading.close()
        if self._thread is None:
            self._end()
        else:
            self._calls.put(None)

    def quit(self) -> None:
        self.close()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            self._answers.append(_made(call))
            # A channel that was given up meanwhile reads no more.
            with suppress(OSError):
                self._writing.send(b".")
        self._end()

    def _end(self) -> None:
        self._writing.close()
        self._caller.close()


def _made(call: Call) -> Answer:
    try:
        return call()
    except Exception as error:
        # The outermost loop of this thread: the request may have been made, so nothing is known.
        log.error("provider.call_failed", exc_info=error)
        return NoAnswer(Reply("response", text=f"our own error while sending: {type(error).__name__}"))
