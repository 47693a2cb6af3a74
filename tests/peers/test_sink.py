"""SINK itself, through smtplib and bare sockets: the tests that lean on it must be able to believe it."""

import smtplib
import socket
import ssl
import threading
import time

import pytest
from peers.sink import Offer, Rule, Sink

MESSAGE = b"Message-ID: <1@example.com>\r\nSubject: x\r\n\r\n.\r\n..two\r\nend\r\n"


def send(client: smtplib.SMTP, recipient: str = "a@example.com", message: bytes = MESSAGE) -> None:
    client.sendmail("news@example.com", [recipient], message)


def connect(sink: Sink) -> smtplib.SMTP:
    return smtplib.SMTP("127.0.0.1", sink.port, timeout=5)


def bare(sink: Sink) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", sink.port), timeout=5)
    assert line.recv(999).startswith(b"220 ")
    return line


def test_a_message_is_accepted_with_the_bytes_that_were_sent():
    with Sink() as sink, connect(sink) as client:
        send(client)
        send(client, "b@example.com", MESSAGE.replace(b"<1@", b"<2@"))
        assert sink.accepted == [
            ("a@example.com", "<1@example.com>", MESSAGE),
            ("b@example.com", "<2@example.com>", MESSAGE.replace(b"<1@", b"<2@")),
        ]
        assert [each[:3] for each in sink.datas] == sink.accepted
        assert sink.violations == []
        assert sink.stages() == ["CONNECT", "EHLO", *["MAIL", "RCPT", "DATA", "DOT"] * 2]
        assert sink.events[2].said == b"mail FROM:<news@example.com>\r\n"
        assert sink.events[3].recipient == "a@example.com"
        assert sink.events[5].wire == MESSAGE


@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA", "DOT"])
def test_a_reply_of_the_script_is_given_as_often_as_it_says(stage):
    with Sink(Rule(stage=stage, times=2, reply="451 4.3.0 later")) as sink, connect(sink) as client:
        for _ in range(2):
            with pytest.raises(smtplib.SMTPException) as caught:
                send(client)
            assert "4.3.0 later" in str(caught.value)
            assert sink.accepted == []
            client.rset()  # which smtplib leaves out after a refused DATA
        send(client)
        assert len(sink.accepted) == 1
        assert len(sink.datas) == (3 if stage == "DOT" else 1)


def test_a_rule_may_be_about_one_recipient_or_each_one_once():
    script = (
        Rule(stage="RCPT", recipient="gone@example.com", reply="550-5.1.1 The account\n550 5.1.1 is gone"),
        Rule(stage="RCPT", times_each=1, reply="450 4.2.0 greylisted"),
    )
    with Sink(*script) as sink, connect(sink) as client:
        for recipient, codes in {
            "a@example.com": [450, 250],
            "b@example.com": [450, 250],
            "gone@example.com": [550, 550],
        }.items():
            for code in codes:
                client.rset()
                client.mail("news@example.com")
                assert client.rcpt(recipient)[0] == code
        assert client.rcpt("gone@example.com")[1] == b"5.1.1 The account\n5.1.1 is gone"
        assert [each.reply[:3] for each in sink.tries("RCPT", "a@example.com")] == [b"450", b"250"]


def test_a_rule_can_let_the_first_ones_pass_and_look_at_the_event():
    script = (
        Rule(stage="MAIL", skip=1, times=1, reply="421 4.7.0 too many", then="close"),
        Rule(stage="NOOP", when=lambda event: event.connection == 2, reply="250 second"),
        Rule(stage="NOOP", connection=1, reply="250 first"),
    )
    with Sink(*script) as sink:
        client = connect(sink)
        client.ehlo()
        assert client.noop()[1] == b"first"
        send(client)
        with pytest.raises(smtplib.SMTPException):
            send(client)
        with connect(sink) as client:
            client.ehlo()
            assert client.noop()[1] == b"second"
            send(client)
        assert [len(sink.tries("DOT", "a@example.com")), sink.connections_made] == [2, 2]


def test_the_line_can_be_closed_after_the_dot_with_and_without_taking_the_message():
    for accepts in (None, True):
        with Sink(Rule(stage="DOT", then="close", accepts=accepts)) as sink:
            with pytest.raises(smtplib.SMTPServerDisconnected):
                send(connect(sink))
            assert len(sink.datas) == 1
            assert len(sink.accepted) == (1 if accepts else 0)


def test_the_line_can_be_reset():
    with Sink(Rule(stage="NOOP", then="reset")) as sink:
        line = bare(sink)
        line.sendall(b"NOOP\r\n")
        with pytest.raises(ConnectionResetError):
            line.recv(99)


def test_the_line_can_be_closed_half_and_what_comes_then_is_logged():
    with Sink(Rule(stage="NOOP", reply="421 bye", then="half-close")) as sink:
        line = bare(sink)
        line.sendall(b"NOOP\r\n")
        assert line.recv(99) == b"421 bye\r\n"
        assert line.recv(99) == b""
        line.sendall(b"QUIT\r\n")
        sink.wait_for(lambda sink: sink.events[-1].stage == "IGNORED")
        assert sink.events[-1].said == b"QUIT\r\n"


def test_the_line_can_fall_silent_and_logs_what_it_ignores():
    with Sink(Rule(stage="DATA", reply="421 4.3.2 shutting down", then="ignore")) as sink:
        line = bare(sink)
        line.sendall(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\n")
        line.settimeout(0.3)
        heard = b""
        while not heard.endswith(b"down\r\n"):
            heard += line.recv(99)
        with pytest.raises(TimeoutError):
            line.recv(99)
        assert heard == b"250 2.1.0 ok\r\n250 2.1.5 ok\r\n421 4.3.2 shutting down\r\n"
        line.sendall(b"NOOP\r\n")
        sink.wait_for(lambda sink: sink.events[-1].stage == "IGNORED")
        line.close()
        sink.wait_for(lambda sink: sink.events[-1].stage == "GONE")


@pytest.mark.parametrize("garbage", [b"\x00\xff\xfe\r\n", b"354 go ahead\r\n", b"hello\r\n", b"25"])
def test_garbage_is_sent_as_it_is_and_takes_no_message_unless_told(garbage):
    with Sink(Rule(stage="DOT", reply=garbage, then="close")) as sink:
        line = bare(sink)
        line.sendall(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\n")
        while b"354" not in line.recv(99):
            pass
        line.sendall(b"x\r\n.\r\n")
        assert line.recv(99) == garbage
        assert sink.accepted == []
        assert len(sink.datas) == 1


def test_an_answer_can_be_kept_waiting():
    with Sink(Rule(stage="DOT", wait_s=0.2)) as sink, connect(sink) as client:
        began = time.monotonic()
        send(client)
        assert time.monotonic() - began >= 0.2


def test_a_call_comes_before_the_answer_and_holds_up_its_own_line_only():
    reached, go_on = threading.Event(), threading.Event()

    def hold(event):
        reached.set()
        go_on.wait(5)

    with Sink(Rule(stage="DOT", recipient="held@example.com", call=hold)) as sink:
        held = threading.Thread(target=lambda: send(connect(sink), "held@example.com"))
        held.start()
        assert reached.wait(5)
        with connect(sink) as client:
            send(client)
        assert [each.recipient for each in sink.accepted] == ["a@example.com"]
        go_on.set()
        held.join(5)
        assert [each.recipient for each in sink.accepted] == ["a@example.com", "held@example.com"]


def test_connections_can_be_refused_and_accepted_again_on_the_same_port():
    with Sink(is_listening=False) as sink:
        with pytest.raises(ConnectionRefusedError):
            connect(sink)
        clients = []
        for _ in range(3):
            sink.accept_connections()
            clients.append(connect(sink))
            sink.refuse_connections()
            with pytest.raises(ConnectionRefusedError):
                connect(sink)
            send(clients[-1])
        sink.cut_connections()
        for client in clients:
            with pytest.raises(smtplib.SMTPServerDisconnected):
                client.noop()
        assert len(sink.accepted) == 3


def test_a_nested_mail_is_refused_and_noted():
    with Sink() as sink, connect(sink) as client:
        client.ehlo()
        client.mail("a@example.com")
        assert client.mail("b@example.com")[0] == 503
        assert sink.violations == ["connection 1: MAIL inside an open transaction"]
        client.rset()
        assert client.mail("b@example.com")[0] == 250


@pytest.mark.parametrize(
    ("said", "violation"),
    [
        (b"NOOP\n", "a bare LF ends"),
        (b"FOO\r\n", "unknown command"),
        (b"MAIL FROM:a\r\n", "no path"),
        (b"RCPT TO:<b@example.com>\r\n", "RCPT without MAIL"),
        (b"MAIL FROM:<a@example.com>\r\nNOOP\r\n", "no PIPELINING was offered"),
        (b"MAIL FROM:<a@example.com> SMTPUTF8\r\n", "SMTPUTF8 was not offered"),
    ],
)
def test_what_a_client_must_not_say_is_noted(said, violation):
    with Sink(offer=Offer(extensions=())) as sink:
        line = bare(sink)
        line.sendall(said)
        line.recv(99)
        assert violation in sink.violations[0]


@pytest.mark.parametrize("message", [b"a\nb\r\n", b"a\rb\r\n", b"a" * 999 + b"\r\n"])
def test_a_message_that_must_not_be_on_the_wire_is_noted(message):
    with Sink() as sink:
        line = bare(sink)
        line.sendall(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\n")
        while b"354" not in line.recv(99):
            pass
        line.sendall(message + b".\r\n")
        line.recv(99)
        assert len(sink.violations) == 1


@pytest.mark.parametrize("cut", range(1, 12))
def test_the_dot_is_found_wherever_the_bytes_are_cut(cut):
    with Sink() as sink:
        line = bare(sink)
        line.sendall(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\n")
        while b"354" not in line.recv(99):
            pass
        message = b"..x\r\ny\r\n.\r\n"
        line.sendall(message[:cut])
        time.sleep(0.02)
        line.sendall(message[cut:])
        assert line.recv(99).startswith(b"250")
        assert sink.accepted[0].wire == b".x\r\ny\r\n"


def test_names_and_passwords_are_checked():
    with Sink(offer=Offer(users={"ann": "s3cret"})) as sink:
        for mechanism in ("auth_plain", "auth_login"):
            with connect(sink) as client:
                client.ehlo()
                assert client.mail("a@example.com")[0] == 530
                client.user, client.password = "ann", "wrong"
                with pytest.raises(smtplib.SMTPAuthenticationError):
                    client.auth(mechanism[5:].upper(), getattr(client, mechanism))
                client.password = "s3cret"
                assert client.auth(mechanism[5:].upper(), getattr(client, mechanism))[0] == 235
                send(client)
        assert len(sink.accepted) == 2
        assert sink.url == f"smtp://ann:s3cret@127.0.0.1:{sink.port}"


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_the_line_can_be_secure(tls):
    with Sink(offer=Offer(tls=tls)) as sink:
        context = ssl.create_default_context()
        with pytest.raises(ssl.SSLCertVerificationError):
            secure(sink, context)
        sink.authority.configure_trust(context)
        with secure(sink, context) as client:
            send(client)
            assert not client.has_extn("starttls")
        assert len(sink.accepted) == 1


def secure(sink: Sink, context: ssl.SSLContext) -> smtplib.SMTP:
    if sink.offer.tls == "implicit":
        return smtplib.SMTP_SSL("127.0.0.1", sink.port, timeout=5, context=context)
    client = connect(sink)
    client.starttls(context=context)
    return client


def test_too_many_connections_are_turned_away():
    with Sink(offer=Offer(connections_limit=1)) as sink, connect(sink):
        with pytest.raises(smtplib.SMTPConnectError):
            connect(sink)
        assert sink.open_most == 2


def test_an_address_beyond_ascii_needs_smtputf8():
    with Sink() as sink, connect(sink) as client:
        client.ehlo()
        client.sendmail("a@example.com", ["josé@example.com"], MESSAGE, mail_options=["SMTPUTF8"])
        assert sink.accepted[0].recipient == "josé@example.com"
        assert sink.violations == []


def test_waiting_for_what_never_comes_ends():
    with Sink() as sink, pytest.raises(TimeoutError):
        sink.wait_for(lambda sink: bool(sink.accepted), timeout_s=0.1)


def test_the_end_of_the_test_is_not_held_up_by_a_silent_line():
    began = time.monotonic()
    with Sink(Rule(stage="NOOP", then="ignore"), Rule(stage="RSET", wait_s=60)) as sink:
        lines = [bare(sink), bare(sink)]
        lines[0].sendall(b"NOOP\r\n")
        lines[1].sendall(b"RSET\r\n")
        sink.wait_for(lambda sink: len(sink.events) == 4)
    assert time.monotonic() - began < 2


def test_it_takes_a_thousand_messages_in_a_few_seconds():
    pipeline = b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\n"
    body = b"Message-ID: <1@example.com>\r\n\r\n" + b"x" * 70 + b"\r\n" * 60 + b".\r\n"

    def feed():
        with bare(sink) as line:
            for _ in range(250):
                line.sendall(pipeline)
                while b"354" not in line.recv(999):
                    pass
                line.sendall(body)
                line.recv(999)

    with Sink() as sink:
        threads = [threading.Thread(target=feed) for _ in range(4)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - began < 5
        assert len(sink.accepted) == 1000


@pytest.mark.parametrize(
    ("extensions", "mail", "rcpt", "is_right"),
    [
        (("DSN",), "RET=HDRS ENVID=so-1+2Bx", "NOTIFY=FAILURE,DELAY ORCPT=rfc822;a+2Bb@example.com", True),
        ((), "RET=HDRS ENVID=so-1", "", False),
        (("DSN",), "", "NOTIFY=FAILURE, DELAY", False),
        (("DSN",), "", "ORCPT=rfc822;a+b@example.com", False),
        (("DSN",), "RET=SOME", "", False),
    ],
)
def test_what_a_report_is_asked_for_is_taken_where_it_was_offered_and_well_written(extensions, mail, rcpt, is_right):
    with Sink(offer=Offer(extensions=extensions)) as sink, connect(sink) as client:
        client.ehlo()
        code, _ = client.docmd(f"MAIL FROM:<news@example.com> {mail}".strip())
        if code == 250:
            code, _ = client.docmd(f"RCPT TO:<a@example.com> {rcpt}".strip())
        assert code == (250 if is_right else 555)
        assert bool(sink.violations) is not is_right
