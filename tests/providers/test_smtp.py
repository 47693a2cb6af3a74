"""Opening SMTP connections: what stands in the way is told as trouble of the provider, never of a message."""

import pytest
from peers.sink import Sink
from peers.sink_script import Offer, Rule
from providers.drive import channel, deliver, message, smtp

from console.errors import ConfigError
from console.providers.base import Accepted, Trouble
from console.providers.smtp import parse_url


def test_refused_connections_are_passing_trouble() -> None:
    with Sink(is_listening=False) as sink:
        trouble = smtp(sink.url).connect()
        assert isinstance(trouble, Trouble)
        assert not trouble.is_lasting
        assert "refused" in trouble.reason.lower()


@pytest.mark.parametrize(("reply", "is_lasting"), [("421 4.3.2 busy", False), ("554 5.7.1 go away", True)])
def test_a_greeting_that_refuses_is_trouble(reply: str, is_lasting: bool) -> None:
    with Sink(Rule(stage="CONNECT", reply=reply)) as sink:
        trouble = smtp(sink.url).connect()
        assert isinstance(trouble, Trouble)
        assert trouble.is_lasting is is_lasting
        assert reply in trouble.reason


def test_a_wrong_password_is_lasting_trouble() -> None:
    with Sink(offer=Offer(users={"ann": "right"})) as sink:
        trouble = smtp(sink.url.replace("right", "swordfish")).connect()
        assert isinstance(trouble, Trouble)
        assert trouble.is_lasting
        assert "authentication" in trouble.reason
        assert "swordfish" not in trouble.reason


def test_a_right_password_signs_in() -> None:
    with Sink(offer=Offer(users={"ann": "right"})) as sink:
        assert isinstance(deliver(channel(sink.url), message()), Accepted)


def test_a_certificate_of_a_stranger_is_lasting_trouble() -> None:
    with Sink(offer=Offer(tls="starttls")) as sink:
        trouble = smtp(sink.url).connect()
        assert isinstance(trouble, Trouble)
        assert trouble.is_lasting
        assert "certificate" in trouble.reason


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_messages_go_over_tls(tls: str) -> None:
    with Sink(offer=Offer(tls=tls)) as sink:  # type: ignore[arg-type]
        line = channel(sink.url + "?verify=no")
        for number in range(3):
            assert isinstance(deliver(line, message(f"r{number}@example.com", body="z" * 50_000 + "\r\n")), Accepted)
        assert len(sink.accepted) == 3


def test_tls_that_is_required_never_falls_back() -> None:
    with Sink() as sink:
        trouble = smtp(sink.url + "?tls=require").connect()
        assert isinstance(trouble, Trouble)
        assert trouble.is_lasting
        assert "STARTTLS" in trouble.reason


@pytest.mark.parametrize("query", ["tls=maybe", "verify=perhaps", "colour=red"])
def test_a_wrong_option_names_the_variable(query: str) -> None:
    with pytest.raises(ConfigError, match="SENDONCE_SMTP_URL"):
        parse_url(f"smtp://mail.example.com?{query}")
