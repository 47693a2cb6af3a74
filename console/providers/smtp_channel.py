"""One SMTP connection as a non-blocking dialogue: everything up to the dot, the dot, the answer as a value.

Where the server offers pipelining, the next message's MAIL, RCPT and DATA go behind the dot in the same write: one
round trip a message. Replies come in the order of the commands, so the answer to the dot is known to be that.

Source: RFC 5321, 4.1.1 and 4.5.3.2 (time-outs by phase); RFC 2920, 3.1 (pipelining, also behind the dot); RFC 3461, 4
(what a later report is asked to carry).
"""

import math
import ssl
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from socket import socket

from console.providers.base import Answer, Deferred, Message, NoAnswer, Ready, Refused, Reply, Untouched
from console.providers.replies import Said, after_dot, before_dot, take_reply

# RFC 5321, 4.5.3.2: seconds to wait for MAIL, RCPT, DATA; for a block of the body; for the dot (settable).
MAIL_TIMEOUT_S = RCPT_TIMEOUT_S = 300.0
DATA_TIMEOUT_S = 120.0
BLOCK_TIMEOUT_S = 180.0
_REPLY_LIMIT = 65_536
_READ_BYTES = 16_384
_DOT = b".\r\n"
_READY = Ready()


@dataclass(frozen=True)
class Offers:
    """What the server's EHLO offered."""

    has_pipelining: bool = False
    has_smtputf8: bool = False
    has_dsn: bool = False
    size_limit: int | None = None


class SmtpChannel:
    """See providers.base.Channel."""

    def __init__(self, sock: socket, offers: Offers, *, timeout_s: float, dot_timeout_s: float):
        sock.setblocking(False)
        self._sock: socket | None = sock
        self._fileno = sock.fileno()
        self._offers = offers
        self._timeout_s = timeout_s
        self._dot_timeout_s = dot_timeout_s
        self._out = b""
        self._is_dot_unsent = False
        self._in = bytearray()
        # What the server has not yet answered, in order; behind "end" the commands of the message that follows.
        self._awaited: deque[str] = deque()
        self._commands: deque[tuple[str, bytes]] = deque()
        self._body = b""
        self._following: Message | None = None
        self._stage = "idle"  # where the message is while no answer is awaited: idle or body
        self._failure: Deferred | Refused | Untouched | None = None
        self._needs_reset = False
        self._is_used = False
        self._is_answered = False
        self.deadline = math.inf

    def fileno(self) -> int:
        return self._fileno

    @property
    def is_open(self) -> bool:
        return self._sock is not None

    @property
    def wants_write(self) -> bool:
        return bool(self._out)

    @property
    def can_follow(self) -> bool:
        return self._offers.has_pipelining

    def begin(self, message: Message, now: float) -> Answer | Ready | None:
        if (refused := self._refusal_of(message)) is not None:
            return refused
        self._take_up(message)
        self._commands = deque(self._commands_of(message))
        if self._needs_reset:
            self._commands.appendleft(("reset", b"RSET\r\n"))
            self._needs_reset = False
        self._next_commands()
        return self._write(now)

    def follow(self, message: Message) -> bool:
        if not self.can_follow or self._refusal_of(message) is not None:
            return False
        self._following = message
        return True

    def advance(self, now: float) -> Answer | Ready | None:
        if self._out and (trouble := self._write(now)) is not None:
            return trouble
        chunk = self._read()
        if chunk is None:
            return None
        if not chunk:
            return self._lost("the server closed the connection")
        self._in += chunk
        return self.hear(now)

    def hear(self, now: float) -> Answer | Ready | None:
        while self._in and self._sock is not None and (said := take_reply(self._in)) is not None:
            result = self._hear(said, now)
            if result is not None:
                return result
        if len(self._in) > _REPLY_LIMIT:
            return self._lost("the server's reply has no end")
        return None

    def finish(self, now: float) -> Answer | None:
        self._awaited.append("end")
        self._out += _DOT
        self._is_dot_unsent = True
        if self._following is not None:
            for phase, line in self._commands_of(self._following):
                self._awaited.append(phase)
                self._out += line
        return self._drain(now)

    def time_out(self) -> Answer | None:
        return self._lost(f"no answer in time ({self._phase})")

    def close(self) -> None:
        if self._sock is not None:
            # Without this close() could wait for a TLS good-bye or flush what must not arrive.
            self._sock.close()
            self._sock = None
        self.deadline = math.inf

    def quit(self) -> None:
        if self._phase == "idle" and self._sock is not None:
            # Whatever happens at QUIT changes no result (RFC 5321, 4.1.1.10).
            with suppress(OSError):
                self._sock.send(b"QUIT\r\n")
        self.close()

    @property
    def _phase(self) -> str:
        return self._awaited[0] if self._awaited else self._stage

    def _refusal_of(self, message: Message) -> Refused | None:
        """Judges a message by what the server offers."""
        if message.needs_smtputf8 and not self._offers.has_smtputf8:
            return Refused(
                Reply("mail", text="The address needs SMTPUTF8, which the server does not offer (RFC 6531).")
            )
        limit = self._offers.size_limit
        if limit and len(message.wire) > limit:
            return Refused(Reply("mail", text=f"the message has {len(message.wire)} bytes, the server takes {limit}"))
        return None

    def _commands_of(self, message: Message) -> tuple[tuple[str, bytes], ...]:
        """Gives the commands before the body; where the server can, it is told how to report what happens later.

        A report is then about our tag, whatever else becomes of the message on its way, and holds its headers only.
        """
        of_mail, of_rcpt = " SMTPUTF8" if message.needs_smtputf8 else "", ""
        if self._offers.has_dsn and message.tag:
            of_mail += f" RET=HDRS ENVID={message.tag}"
            of_rcpt = " NOTIFY=FAILURE,DELAY"
            # RFC 6533 has another form for addresses beyond ASCII, which few servers know; without it nothing is lost.
            if message.rcpt_to.isascii():
                of_rcpt += f" ORCPT=rfc822;{_xtext(message.rcpt_to)}"
        return (
            ("mail", f"MAIL FROM:<{message.mail_from}>{of_mail}\r\n".encode()),
            ("rcpt", f"RCPT TO:<{message.rcpt_to}>{of_rcpt}\r\n".encode()),
            ("data", b"DATA\r\n"),
        )

    def _take_up(self, message: Message) -> None:
        """Makes this the message that is talked about."""
        self._failure, self._is_answered = None, False
        body = message.wire
        if b"\n." in body:
            body = body.replace(b"\r\n.", b"\r\n..")
        self._body = b"." + body if body.startswith(b".") else body

    def _hear(self, said: Said, now: float) -> Answer | Ready | None:
        """Takes one reply; gives a result when the message's fate, or readiness for the dot, is known."""
        if not self._awaited:
            return self._hear_unasked(said)
        self._is_answered = self._is_used = True
        phase = self._awaited.popleft()
        match phase:
            case "end":
                return self._hear_end(said, now)
            case "reset":
                if said.code // 100 != 2:
                    self._awaited.appendleft(phase)
                    return self._lost("the server refused RSET")
            case _:
                if said.code // 100 != (3 if phase == "data" else 2):
                    self._fail(phase, said)
                elif phase == "data":
                    return self._send_body(now)
        if said.code in (0, 421):
            return self._over(self._failure or Deferred(Reply(phase, text=said.text)), is_last=True)
        if self._awaited:
            return None
        if self._failure is not None:
            self._needs_reset = True
            return self._over(self._failure, is_last=isinstance(self._failure, Untouched))
        self._next_commands()
        return self._write(now)

    def _hear_end(self, said: Said, now: float) -> Answer:
        is_last = said.code in (0, 421) or said.code // 100 in (1, 3)
        answer = self._over(after_dot(said), is_last=is_last)
        if self._following is not None and not is_last:
            self._take_up(self._following)
            self.deadline = now + self._allowed_s()
        self._following = None
        return answer

    def _hear_unasked(self, said: Said) -> Answer | None:
        """Takes a 421 that nothing asked for (RFC 5321, 3.8), or noise: the line is of no more use."""
        if self._stage == "idle":
            self.close()
            return None
        return self._over(before_dot(self._stage, said), is_last=True)

    def _fail(self, phase: str, said: Said) -> None:
        # The first failure is the cause; what follows in a pipelined group only follows from it.
        self._failure = self._failure or before_dot(phase, said)

    def _send_body(self, now: float) -> Answer | Ready | None:
        if self._failure is not None:
            # The group's DATA was taken although RCPT failed. Only a closed line surely ends it without a message.
            return self._over(self._failure, is_last=True)
        self._stage = "body"
        self._out += self._body
        return self._write(now)

    def _next_commands(self) -> None:
        """Queues the next command, or all of them where the server offers pipelining."""
        count = len(self._commands) if self._offers.has_pipelining else 1
        for _ in range(min(count, len(self._commands))):
            phase, line = self._commands.popleft()
            self._awaited.append(phase)
            self._out += line

    def _write(self, now: float) -> Answer | Ready | None:
        """Writes what the socket takes; Ready when the whole body is with the kernel."""
        trouble = self._drain(now)
        if trouble is None and not self._out and self._phase == "body":
            self.deadline = math.inf
            return _READY
        return trouble

    def _drain(self, now: float) -> Answer | None:
        if self._sock is None:
            return None
        try:
            sent = self._sock.send(self._out)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            sent = 0
        except OSError as error:
            return self._lost(_words(error))
        if sent:
            self._is_dot_unsent = False
            self._out = self._out[sent:]
        self.deadline = now + self._allowed_s()
        return None

    def _read(self) -> bytes | None:
        """Gives what has come, b"" at the end of the line, None when there is nothing to read yet."""
        if self._sock is None:
            return None
        try:
            chunk = self._sock.recv(_READ_BYTES)
            # What TLS has already decrypted makes no socket readable any more.
            while isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
                chunk += self._sock.recv(_READ_BYTES)
            return chunk
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError:
            return b""

    def _allowed_s(self) -> float:
        match self._phase:
            case "end":
                return self._dot_timeout_s
            case "data":
                return min(DATA_TIMEOUT_S, self._timeout_s)
            case "body":
                return min(BLOCK_TIMEOUT_S, self._timeout_s)
            case _:
                return min(MAIL_TIMEOUT_S, self._timeout_s)

    def _lost(self, reason: str) -> Answer | None:
        """Judges a connection that is gone, by how far the message had come; None when there was no message."""
        phase = self._phase
        # The kernel has not taken the dot: the server can't have seen it. TLS may have sent a part of its record.
        if phase == "end" and self._is_dot_unsent and not isinstance(self._sock, ssl.SSLSocket):
            phase = "body"
        self.close()
        self._awaited.clear()
        self._stage, self._following = "idle", None
        if phase == "idle":
            return None
        if phase == "end":
            return NoAnswer(Reply("end", text=reason))
        if self._failure is not None:
            return self._failure
        if self._is_used and not self._is_answered:
            return Untouched(reason)
        return Deferred(Reply(phase, text=reason))

    def _over(self, answer: Answer, *, is_last: bool = False) -> Answer:
        self._stage = "idle"
        self._body = b""
        self.deadline = math.inf
        if is_last:
            self._awaited.clear()
            self.close()
        return answer


def _xtext(address: str) -> str:
    """Gives an ASCII address as RFC 3461, 4, has it: + and =, the only ones of its characters that may not stand."""
    return address.replace("+", "+2B").replace("=", "+3D") if "+" in address or "=" in address else address


def _words(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
