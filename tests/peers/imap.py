"""POST: a mailbox by IMAP on loopback, in threads of the test's process: as much of RFC 9051 as a reader needs.

with Post(mails=[b"Subject: x\\r\\n\\r\\n"]) as post:
    ... read post.url with post.PASSWORD ...
    assert post.seen == {1}
"""

import base64
import re
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self

USER = "bounces@example.com"
PASSWORD = "swordfish 'n\"chips\\"
_SPAN = re.compile(r"(\d+):(\d+|\*)")
_FETCH = re.compile(r"(\d+) \(RFC822\.SIZE BODY\.PEEK\[\]<0\.(\d+)>\)")


class Post:
    """A mailbox with its mails by UID. What is set on it holds from the next command on."""

    def __init__(self, mails: Iterable[bytes] = (), *, has_plain: bool = True):
        self.mails: dict[int, bytes] = {}
        self.uid_validity = 7
        self.seen: set[int] = set()
        self.sign_in_count = 0
        self.said: list[str] = []
        # Called before a command is answered, with its words; to end the line, raise ConnectionError.
        self.before: Callable[[str], object] = lambda said: None
        self.withheld: set[int] = set()  # UIDs that a FETCH is answered NO for
        self.has_plain = has_plain
        self._next_uid = 1
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.url = f"imap://bounces%40example.com@127.0.0.1:{self.port}/Bounces?tls=off"
        for each in mails:
            self.put(each)

    def put(self, mail: bytes) -> int:
        """Adds a mail; gives its UID."""
        uid, self._next_uid = self._next_uid, self._next_uid + 1
        self.mails[uid] = mail
        return uid

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._door.accept()
                threading.Thread(target=self._talk, args=[line], daemon=True).start()

    def _talk(self, line: socket.socket) -> None:
        with line, line.makefile("rwb") as file, suppress(OSError, ValueError):
            self._say(file, b"* OK post is here")
            while raw := file.readline():
                tag, _, said = raw.decode().strip().partition(" ")
                self.said.append(said)
                self.before(said)
                answer = self._answer(file, said)
                self._say(file, f"{tag} {answer}".encode())
                if said.upper() == "LOGOUT":
                    return

    def _answer(self, file, said: str) -> str:
        command, _, rest = said.partition(" ")
        match command.upper():
            case "CAPABILITY":
                self._say(file, b"* CAPABILITY IMAP4rev1" + (b" AUTH=PLAIN" if self.has_plain else b""))
                return "OK done"
            case "AUTHENTICATE":
                self._say(file, b"+ ")
                _, user, password = base64.b64decode(file.readline()).decode().split("\0")
                return self._sign_in(user, password)
            case "LOGIN":
                user, password = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
                return self._sign_in(*(re.sub(r"\\(.)", r"\1", each) for each in (user, password)))
            case "SELECT":
                if rest != '"Bounces"':
                    return "NO there is no such folder"
                self._say(file, f"* {len(self.mails)} EXISTS".encode())
                self._say(file, f"* OK [UIDVALIDITY {self.uid_validity}] valid".encode())
                self._say(file, f"* OK [UIDNEXT {self._next_uid}] next".encode())
                return "OK [READ-WRITE] open"
            case "UID":
                return self._by_uid(file, rest)
            case "LOGOUT":
                self._say(file, b"* BYE")
                return "OK bye"
        return "BAD what?"

    def _sign_in(self, user: str, password: str) -> str:
        if (user, password) != (USER, PASSWORD):
            # Some servers are that careless.
            return f"NO [AUTHENTICATIONFAILED] {password} is wrong"
        self.sign_in_count += 1
        return "OK welcome"

    def _by_uid(self, file, said: str) -> str:
        command, _, rest = said.partition(" ")
        if command == "SEARCH" and (found := _SPAN.search(rest)):
            low = int(found[1])
            high = max([*self.mails, low]) if found[2] == "*" else int(found[2])
            uids = " ".join(str(uid) for uid in self.mails if low <= uid <= high)
            self._say(file, f"* SEARCH {uids}".strip().encode())
            return "OK done"
        if command == "FETCH" and (found := _FETCH.fullmatch(rest)):
            uid, limit = int(found[1]), int(found[2])
            if uid in self.withheld:
                return "NO it is broken"
            if uid in self.mails:
                part = self.mails[uid][:limit]
                size = len(self.mails[uid])
                self._say(file, f"* 1 FETCH (UID {uid} RFC822.SIZE {size} BODY[]<0> {{{len(part)}}}".encode())
                file.write(part)
                self._say(file, b")")
            return "OK done"
        if command == "STORE":
            self.seen |= {int(each) for each in rest.split()[0].split(",")}
            return "OK done"
        return "BAD what?"

    @staticmethod
    def _say(file, words: bytes) -> None:
        file.write(words + b"\r\n")
        file.flush()
