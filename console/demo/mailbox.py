"""A local SMTP server that takes every message and writes down what really arrived. A process of its own.

    python -m console.demo.mailbox --journal FILE [--moments] [--port N] [--dot-delay-ms MS]

It says its port on the first line of its output. Each accepted message is a line in the journal, `recipient TAB
Message-ID` (and with --moments `TAB moment`, by time.time()), written before the 250 is: a message whose 250 never
reaches the worker still counts as accepted. Nothing here knows the ledger, so that the two can be held against each
other (console/demo/verdict.py).

Source: RFC 5321, RFC 2920. Measured on 2026-11-30 with smtp-source -s 16 -d, 4 kB, on two cores shared with it and with
others: 4,000 to 5,500 messages/s; aiosmtpd, the usual choice, 1,600 without writing anything down.
"""

import argparse
import asyncio
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

_MESSAGE_ID = re.compile(rb"^message-id:[ \t]*(?:\r\n[ \t]+)?(<[^\r\n]*>)", re.IGNORECASE | re.MULTILINE)
_ADDRESS = re.compile(rb"<([^>]*)>")
_END = b"\r\n.\r\n"
# A command line has at most 512 octets with its CRLF (RFC 5321, 4.5.3.1.4); some more for SMTPUTF8 addresses.
_LONGEST_LINE = 4096


class Journal:
    """The file of what arrived; a line is in the system's hands before anybody hears of it."""

    def __init__(self, path: Path, *, has_moments: bool = False):
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._has_moments = has_moments

    def write(self, recipients: list[bytes], message_id: bytes) -> None:
        # One write for all recipients: readers never see half a message.
        end = b"\t%.6f\n" % time.time() if self._has_moments else b"\n"
        os.write(self._descriptor, b"".join(recipient + b"\t" + message_id + end for recipient in recipients))

    def close(self) -> None:
        os.close(self._descriptor)


class Session(asyncio.Protocol):
    """One connection."""

    def __init__(self, journal: Journal, *, dot_delay_s: float):
        self._journal = journal
        self._dot_delay_s = dot_delay_s
        self._transport: asyncio.Transport | None = None
        self._in = bytearray()
        self._is_body = False
        self._searched = 0
        self._sender: bytes | None = None
        self._recipients: list[bytes] = []
        # Answers are given in the order of the commands, so nothing is read on while a dot waits for its answer.
        self._is_waiting = False
        self._commands: dict[bytes, Callable[[bytes], bytes]] = {
            b"EHLO": self._hello,
            b"HELO": lambda _: b"250 mailbox\r\n",
            b"MAIL": self._mail,
            b"RCPT": self._rcpt,
            b"DATA": self._data,
            b"RSET": self._reset,
            b"NOOP": lambda _: b"250 2.0.0 ok\r\n",
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.write(b"220 mailbox ESMTP sendonce demo\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._in += data
        self._go_on()

    def _go_on(self) -> None:
        said = []
        while not self._is_waiting and self._transport is not None:
            if self._is_body:
                if not self._take_body(said):
                    break
                continue
            end = self._in.find(b"\r\n")
            if end < 0:
                if len(self._in) > _LONGEST_LINE:
                    said.append(b"500 5.5.2 line too long\r\n")
                    self._in.clear()
                break
            line = bytes(self._in[:end])
            del self._in[: end + 2]
            if line[:4].upper() == b"QUIT":
                said.append(b"221 2.0.0 bye\r\n")
                self._say(said)
                self._close()
                return
            command = self._commands.get(line[:4].upper())
            said.append(command(line) if command else b"502 5.5.2 not known here\r\n")
        self._say(said)

    def _take_body(self, said: list[bytes]) -> bool:
        """Accepts the message when its end is there; gives False while it is not."""
        end = 0 if self._in.startswith(b".\r\n") else self._in.find(_END, self._searched)
        if end < 0:
            self._searched = max(0, len(self._in) - len(_END) + 1)
            return False
        head_end = self._in.find(b"\r\n\r\n", 0, end + 4)
        found = _MESSAGE_ID.search(self._in, 0, head_end if head_end >= 0 else end)
        self._journal.write(self._recipients, found[1] if found else b"")
        del self._in[: end + (3 if end == 0 else len(_END))]
        self._searched = 0
        self._is_body = False
        self._forget()
        if self._dot_delay_s:
            self._is_waiting = True
            asyncio.get_running_loop().call_later(self._dot_delay_s, self._answer_dot)
        else:
            said.append(b"250 2.0.0 taken\r\n")
        return True

    def _answer_dot(self) -> None:
        self._is_waiting = False
        self._say([b"250 2.0.0 taken\r\n"])
        self._go_on()

    def _hello(self, line: bytes) -> bytes:
        self._forget()
        return b"250-mailbox\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 ENHANCEDSTATUSCODES\r\n"

    def _mail(self, line: bytes) -> bytes:
        found = _ADDRESS.search(line)
        if self._sender is not None:
            return b"503 5.5.1 one at a time\r\n"
        if found is None:
            return b"501 5.5.4 MAIL FROM:<address> is meant\r\n"
        self._sender = found[1]
        return b"250 2.1.0 ok\r\n"

    def _rcpt(self, line: bytes) -> bytes:
        found = _ADDRESS.search(line)
        if self._sender is None:
            return b"503 5.5.1 MAIL first\r\n"
        if found is None:
            return b"501 5.5.4 RCPT TO:<address> is meant\r\n"
        self._recipients.append(found[1].replace(b"\t", b" "))
        return b"250 2.1.5 ok\r\n"

    def _data(self, line: bytes) -> bytes:
        if not self._recipients:
            return b"503 5.5.1 RCPT first\r\n"
        self._is_body = True
        return b"354 go ahead\r\n"

    def _reset(self, line: bytes) -> bytes:
        self._forget()
        return b"250 2.0.0 ok\r\n"

    def _forget(self) -> None:
        self._sender, self._recipients = None, []

    def _say(self, said: list[bytes]) -> None:
        if said and self._transport is not None:
            self._transport.write(b"".join(said))

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None


async def serve(*, host: str, port: int, journal: Journal, dot_delay_s: float) -> None:
    """Takes mail until SIGTERM; says its port on the first line of the output."""
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, is_over.set)
    server = await loop.create_server(
        lambda: Session(journal, dot_delay_s=dot_delay_s), host=host, port=port, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await is_over.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m console.demo.mailbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--journal", type=Path, required=True, help="the file that each accepted message is added to")
    parser.add_argument("--moments", action="store_true", help="write down when each message was accepted, too")
    parser.add_argument("--dot-delay-ms", type=float, default=0.0, help="how long to wait before the dot's 250")
    given = parser.parse_args()
    journal = Journal(given.journal, has_moments=given.moments)
    try:
        asyncio.run(serve(host=given.host, port=given.port, journal=journal, dot_delay_s=given.dot_delay_ms / 1000))
    finally:
        journal.close()


if __name__ == "__main__":
    main()
