"""The mailbox counts what it accepts, before it says so, and speaks SMTP well enough to be believed."""

import os
import smtplib
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.demo.children import Children
from console.demo.post_office import PostOffice, open_post_office, read_tally

LETTER = b"Subject: Hello\r\nMessage-ID: <1.a@example.com>\r\n\r\nA body\r\n"


@contextmanager
def post_office(folder: Path, *, dot_delay_ms: float = 0.0) -> Iterator[PostOffice]:
    """A running mailbox."""
    with Children(folder) as children:
        yield open_post_office(children, environ=os.environ, dot_delay_ms=dot_delay_ms)


@contextmanager
def line_to(at: PostOffice) -> Iterator[socket.socket]:
    """A bare connection, greeted."""
    with socket.create_connection(("127.0.0.1", at.port), timeout=5) as line:
        assert line.recv(100).startswith(b"220 ")
        yield line


def read_replies(line: socket.socket, count: int) -> list[bytes]:
    """So many reply lines."""
    got = b""
    while got.count(b"\r\n") < count:
        more = line.recv(4096)
        assert more, got
        got += more
    return got.split(b"\r\n")[:-1]


def test_what_arrives_is_counted_by_recipient_and_message_id(tmp_path: Path) -> None:
    with post_office(tmp_path) as at, smtplib.SMTP("127.0.0.1", at.port) as client:
        for recipient in ("a@example.com", "B@Example.com", "b@example.com"):
            assert client.sendmail("news@example.com", recipient, LETTER) == {}
        assert at.accepted_count() == 3
        assert at.tally() == {("a@example.com", "<1.a@example.com>"): 1, ("b@example.com", "<1.a@example.com>"): 2}


def test_a_journal_with_moments_tells_when_each_message_was_accepted(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        at = open_post_office(children, environ=os.environ, has_moments=True)
        with smtplib.SMTP("127.0.0.1", at.port) as client:
            before = time.time()
            client.sendmail("news@example.com", "A@example.com", LETTER)
            after = time.time()
        assert before - 0.001 <= at.moments()["a@example.com"] <= after + 0.001
        assert at.tally() == {("a@example.com", "<1.a@example.com>"): 1}


def test_a_message_is_counted_before_its_answer_is_written(tmp_path: Path) -> None:
    with post_office(tmp_path, dot_delay_ms=60_000) as at, line_to(at) as line:
        line.sendall(b"EHLO x\r\nMAIL FROM:<n@example.com>\r\nRCPT TO:<a@example.com>\r\nDATA\r\n")
        assert read_replies(line, 8)[-1].startswith(b"354 ")
        line.sendall(LETTER)
        time.sleep(0.2)
        assert at.accepted_count() == 0
        line.sendall(b".\r\n")
        deadline = time.monotonic() + 5
        while at.accepted_count() == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        line.settimeout(0.2)
        with pytest.raises(TimeoutError):
            line.recv(1)


def test_a_line_that_breaks_before_the_dot_counts_nothing(tmp_path: Path) -> None:
    with post_office(tmp_path) as at:
        with line_to(at) as line:
            line.sendall(b"EHLO x\r\nMAIL FROM:<n@example.com>\r\nRCPT TO:<a@example.com>\r\nDATA\r\n" + LETTER)
            read_replies(line, 8)
        with smtplib.SMTP("127.0.0.1", at.port) as client:
            client.sendmail("news@example.com", "b@example.com", LETTER)
        assert [recipient for recipient, _ in at.tally()] == ["b@example.com"]


def test_commands_in_one_piece_are_answered_in_order_and_the_end_is_found_in_pieces(tmp_path: Path) -> None:
    with post_office(tmp_path, dot_delay_ms=20) as at, line_to(at) as line:
        line.sendall(b"EHLO x\r\n")
        assert b"250-PIPELINING" in read_replies(line, 5)
        envelope = b"MAIL FROM:<n@example.com>\r\nRCPT TO:<%s>\r\nDATA\r\n"
        line.sendall(envelope % b"a@example.com")
        assert [reply[:3] for reply in read_replies(line, 3)] == [b"250", b"250", b"354"]
        for piece in (LETTER, b"..stuffed\r\n.", b"\r", b"\n" + envelope % b"b@example.com"):
            line.sendall(piece)
            time.sleep(0.02)
        assert [reply[:3] for reply in read_replies(line, 4)] == [b"250", b"250", b"250", b"354"]
        line.sendall(LETTER + b".\r\nQUIT\r\n")
        assert [reply[:3] for reply in read_replies(line, 2)] == [b"250", b"221"]
        assert at.accepted_count() == 2


def test_a_second_mail_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    with post_office(tmp_path) as at, line_to(at) as line:
        line.sendall(b"EHLO x\r\nDATA\r\nMAIL FROM:<n@example.com>\r\nMAIL FROM:<n@example.com>\r\nRSET\r\nVRFY x\r\n")
        codes = [reply[:3] for reply in read_replies(line, 10)][5:]
        assert codes == [b"503", b"250", b"503", b"250", b"502"]


def test_a_line_of_the_journal_that_is_being_written_is_not_counted_yet(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert not read_tally(journal)
    journal.write_bytes(b"a@example.com\t<1@x>\nb@exam")
    assert read_tally(journal) == {("a@example.com", "<1@x>"): 1}
