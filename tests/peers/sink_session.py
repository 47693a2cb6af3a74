"""One connection of SINK: reads commands, asks the script what to do, else answers as RFC 5321 says."""

from __future__ import annotations

import base64
import re
import socket
import struct
import time
from binascii import Error as Base64Error
from contextlib import suppress
from typing import TYPE_CHECKING

from peers.sink_script import Event, Rule

if TYPE_CHECKING:
    from peers.sink import Sink

_PATH = re.compile(rb"(?:MAIL FROM|RCPT TO):\s*<([^>]*)>(.*)", re.IGNORECASE | re.DOTALL)
_NEXT_RCPT = re.compile(rb"RCPT TO:\s*<([^>\r\n]*)>", re.IGNORECASE)
_MESSAGE_ID = re.compile(rb"^Message-ID:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
# RFC 3461, 4.2 and 4.4: each value in xtext where it is free text.
_XTEXT = r"(?:[!-*,-<>-~]|\+[0-9A-F]{2})+"
_DSN_MAIL = re.compile(rf"RET=(?:FULL|HDRS)|ENVID={_XTEXT}")
_DSN_RCPT = re.compile(rf"NOTIFY=(?:NEVER|(?:(?:SUCCESS|FAILURE|DELAY)(?:,(?!$)|$))+)|ORCPT=[A-Za-z0-9-]+;{_XTEXT}")
_TAKEN = re.compile(rb"2\d\d[ -]")
_END = b"\r\n.\r\n"


class Over(Exception):
    """The connection has ended, by either side."""


class Session:
    """A line to one client, driven by its own thread."""

    def __init__(self, sink: Sink, line: socket.socket, number: int):
        self.number = number
        self.is_too_many = False
        self._sink = sink
        self._line = line
        self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._in = b""
        self._out: list[bytes] = []
        self._sender: str | None = None
        self._recipients: list[str] = []
        self._has_utf8 = False
        self._is_secure = False
        self._is_known = not sink.offer.users
        self._commands = {
            b"EHLO": self._hello, b"HELO": self._hello, b"STARTTLS": self._starttls, b"AUTH": self._auth,
            b"MAIL": self._mail, b"RCPT": self._rcpt, b"DATA": self._data, b"RSET": self._rset, b"NOOP": self._noop,
            b"QUIT": self._quit,
        }  # fmt: skip

    def run(self) -> None:
        """Holds the whole dialogue."""
        try:
            if self._sink.offer.tls == "implicit":
                self._secure()
            if self.is_too_many:
                self._answer("CONNECT", b"", "421 4.7.0 too many connections")
                return
            self._answer("CONNECT", b"", "220 sink ESMTP")
            while True:
                said = self._read_line()
                command = self._commands.get(said[:8].upper() if said[:8].upper() == b"STARTTLS" else said[:4].upper())
                if command is None:
                    self._violation(f"unknown command {said!r}")
                    self._say(b"500 5.5.2 unknown command\r\n")
                else:
                    command(said)
        except (Over, OSError):
            self._sink.note(self._event("GONE", b""))
        finally:
            with suppress(OSError):
                self._flush()
            self._line.close()
            self._sink.end(self)

    def cut(self) -> None:
        """Ends the line, from any thread."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    # Commands

    def _hello(self, said: bytes) -> None:
        self._forget()
        lines = ["250-sink"]
        lines += [f"250-{each}" for each in self._sink.offer.extensions]
        if self._sink.offer.tls == "starttls" and not self._is_secure:
            lines.append("250-STARTTLS")
        if self._sink.offer.users:
            lines.append(f"250-AUTH {' '.join(self._sink.offer.mechanisms)}")
        usual = "250 sink" if said[:4].upper() == b"HELO" else "\n".join([*lines, "250 HELP"])
        self._answer("EHLO", said, usual)

    def _starttls(self, said: bytes) -> None:
        if self._answer("STARTTLS", said, "220 2.0.0 go ahead").startswith(b"220"):
            if self._in:
                self._violation("bytes after STARTTLS, before the handshake")
            self._in = b""
            self._flush()
            self._secure()
            self._forget()

    def _secure(self) -> None:
        self._line = self._sink.tls_context.wrap_socket(self._line, server_side=True)
        self._is_secure = True

    def _auth(self, said: bytes) -> None:
        words = said.split()
        mechanism = words[1].decode().upper() if len(words) > 1 else ""
        try:
            if mechanism == "PLAIN":
                given = words[2] if len(words) > 2 else self._ask(b"334 \r\n")
                _, name, password = base64.b64decode(given).decode().split("\0")
            else:
                name = base64.b64decode(words[2] if len(words) > 2 else self._ask(b"334 VXNlcm5hbWU6\r\n")).decode()
                password = base64.b64decode(self._ask(b"334 UGFzc3dvcmQ6\r\n")).decode()
        except (Base64Error, ValueError):
            self._violation(f"unreadable credentials after {mechanism}")
            name = password = ""
        is_right = mechanism in self._sink.offer.mechanisms and self._sink.offer.users.get(name) == password
        usual = "235 2.7.0 welcome" if is_right else "535 5.7.8 wrong name or password"
        if self._answer("AUTH", said, usual).startswith(b"235"):
            self._is_known = True

    def _mail(self, said: bytes) -> None:
        path, rest = self._path(said)
        usual = "250 2.1.0 ok"
        if not self._is_known:
            usual = "530 5.7.0 sign in first"
        elif self._sender is not None:
            self._violation("MAIL inside an open transaction")
            usual = "503 5.5.1 one at a time"
        elif "SMTPUTF8" in rest.upper() and "SMTPUTF8" not in self._sink.offer.extensions:
            self._violation("SMTPUTF8 was not offered")
            usual = "555 5.5.4 no such parameter"
        elif not self._are_known(rest, _DSN_MAIL):
            usual = "555 5.5.4 no such parameter"
        following = _NEXT_RCPT.match(self._in)
        recipients = (following.group(1).decode("utf-8", "replace"),) if following else ()
        if self._answer("MAIL", said, usual, sender=path, recipients=recipients).startswith(b"2"):
            self._sender, self._recipients = path, []
            self._has_utf8 = "SMTPUTF8" in rest.upper()

    def _rcpt(self, said: bytes) -> None:
        path, rest = self._path(said)
        usual = "250 2.1.5 ok"
        if self._sender is None:
            # In a pipeline RCPT follows a refused MAIL by right; only without one it is a mistake of the client.
            if "PIPELINING" not in self._sink.offer.extensions:
                self._violation("RCPT without MAIL")
            usual = "503 5.5.1 MAIL first"
        elif not path.isascii() and not self._has_utf8:
            self._violation("an address beyond ASCII without SMTPUTF8")
            usual = "553 5.6.7 SMTPUTF8 is needed"
        elif not self._are_known(rest, _DSN_RCPT):
            usual = "555 5.5.4 no such parameter"
        if self._answer("RCPT", said, usual, recipients=(path,)).startswith(b"2"):
            self._recipients.append(path)

    def _data(self, said: bytes) -> None:
        usual = "354 go ahead" if self._recipients else "554 5.5.1 no valid recipients"
        if self._in:
            self._violation("bytes after DATA, before its answer")
        if not self._answer("DATA", said, usual).startswith(b"354"):
            return
        wire = self._read_message()
        found = _MESSAGE_ID.search(wire)
        message_id = found.group(1).decode("utf-8", "replace") if found else ""
        event = self._event("DOT", b".\r\n", wire=wire)
        self._sink.note_data(event, message_id)
        self._forget()
        rule = self._sink.rule_for(event)
        self._obey(event, rule, "250 2.0.0 taken" if event.recipients else "554 5.5.1 no valid recipients", message_id)

    def _rset(self, said: bytes) -> None:
        self._answer("RSET", said, "250 2.0.0 ok")
        self._forget()

    def _noop(self, said: bytes) -> None:
        self._answer("NOOP", said, "250 2.0.0 ok")

    def _quit(self, said: bytes) -> None:
        self._answer("QUIT", said, "221 2.0.0 bye")
        self._flush()
        raise Over

    # What the script says

    def _answer(
        self, stage: str, said: bytes, usual: str, *, sender: str | None = None, recipients: tuple[str, ...] = ()
    ) -> bytes:
        """Does what the script says at this stage, else gives the usual answer; gives what was answered."""
        event = self._event(stage, said, sender=sender, recipients=recipients)
        return self._obey(event, self._sink.rule_for(event), usual, "")

    def _obey(self, event: Event, rule: Rule | None, usual: str, message_id: str) -> bytes:
        reply = _line_ended(usual)
        if rule is not None:
            if rule.reply is not None:
                reply = rule.reply if isinstance(rule.reply, bytes) else _line_ended(rule.reply)
            elif rule.then != "go on":
                reply = b""
        event.reply = reply
        self._sink.note(event)
        if rule is not None and (rule.call or rule.wait_s):
            self._flush()
            if rule.call:
                rule.call(event)
            if rule.wait_s and self._sink.stopping.wait(rule.wait_s):
                raise Over
        accepts = rule.accepts if rule is not None and rule.accepts is not None else _TAKEN.match(reply)
        if event.stage == "DOT" and accepts:
            self._sink.note_accepted(event, message_id)
        self._say(reply)
        if rule is not None and rule.then != "go on":
            self._flush()
            self._leave(rule.then)
        return reply

    def _leave(self, then: str) -> None:
        if then == "reset":
            # RST instead of FIN: lingering on, for no time.
            self._line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif then in ("close", "half-close"):
            self._line.shutdown(socket.SHUT_WR)
        if then in ("ignore", "half-close"):
            if self._in:
                self._sink.note(self._event("IGNORED", self._in))
            while heard := self._line.recv(65_536):
                self._sink.note(self._event("IGNORED", heard))
        raise Over

    # Bytes

    def _event(
        self, stage: str, said: bytes, *, sender: str | None = None, recipients: tuple[str, ...] = (), wire: bytes = b""
    ) -> Event:
        return Event(
            at=time.monotonic(),
            connection=self.number,
            stage=stage,
            said=said,
            sender=self._sender if sender is None else sender,
            recipients=recipients or tuple(self._recipients),
            wire=wire,
        )

    def _are_known(self, rest: str, dsn: re.Pattern[str]) -> bool:
        """Whether the parameters behind a path are well formed, and of an extension that was offered."""
        for each in rest.split():
            if each.upper() in ("SMTPUTF8", "BODY=8BITMIME", "BODY=7BIT") or each.upper().startswith("SIZE="):
                continue
            if "DSN" not in self._sink.offer.extensions or not dsn.fullmatch(each):
                self._violation(f"the parameter {each} was not offered, or is not written so")
                return False
        return True

    def _forget(self) -> None:
        self._sender, self._recipients, self._has_utf8 = None, [], False

    def _violation(self, words: str) -> None:
        self._sink.violations.append(f"connection {self.number}: {words}")

    def _path(self, said: bytes) -> tuple[str, str]:
        found = _PATH.match(said.rstrip(b"\r\n"))
        if found is None:
            self._violation(f"no path in {said!r}")
            return "", ""
        return found.group(1).decode("utf-8", "replace"), found.group(2).decode("utf-8", "replace")

    def _say(self, reply: bytes) -> None:
        self._out.append(reply)

    def _flush(self) -> None:
        if self._out:
            out, self._out = b"".join(self._out), []
            self._line.sendall(out)

    def _ask(self, question: bytes) -> bytes:
        self._say(question)
        return self._read_line().rstrip(b"\r\n")

    def _read_more(self) -> None:
        """Says what was kept back, then reads: answers to a pipeline go out together, as from a real server."""
        self._flush()
        heard = self._line.recv(262_144)
        if not heard:
            raise Over
        self._in += heard

    def _read_line(self) -> bytes:
        while (end := self._in.find(b"\n")) < 0:
            self._read_more()
        said, self._in = self._in[: end + 1], self._in[end + 1 :]
        if not said.endswith(b"\r\n"):
            self._violation(f"a bare LF ends {said!r}")
        if len(said) > 512:
            self._violation(f"a command of {len(said)} octets")
        if self._in and "PIPELINING" not in self._sink.offer.extensions:
            self._violation(f"more bytes after {said!r}, and no PIPELINING was offered")
        return said

    def _read_message(self) -> bytes:
        """Gives the message up to its dot, without stuffing."""
        self._in = b"\r\n" + self._in  # so that a dot on the first line is one like all others
        searched = 0
        while (end := self._in.find(_END, searched)) < 0:
            searched = max(0, len(self._in) - len(_END))
            self._read_more()
        stuffed, self._in = self._in[: end + 2], self._in[end + len(_END) :]
        wire = stuffed.replace(b"\r\n..", b"\r\n.")[2:]
        if wire.count(b"\r") != wire.count(b"\r\n") or wire.count(b"\n") != wire.count(b"\r\n"):
            self._violation("a bare CR or LF in a message")
        if any(len(each) > 998 for each in wire.split(b"\r\n")):
            self._violation("a line over 998 octets in a message")
        return wire


def _line_ended(reply: str) -> bytes:
    return "".join(f"{line}\r\n" for line in reply.split("\n")).encode()
