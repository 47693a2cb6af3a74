"""The adapter for Amazon SES against moto's server, which knows senders, signatures and the shape of the API.

moto has no GetAccount, which opening a channel asks for: the whole way is test_contract.py's business.
"""

from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer
from providers.drive import message

from console.providers.base import Accepted, Message, Refused
from console.providers.ses import Ses


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def provider(url: str) -> Ses:
    return Ses("ses", region="eu-west-1", access_key="AKIAEXAMPLE", secret_key="s" * 40, endpoint_url=url)


def test_a_message_of_a_verified_sender_is_accepted_and_a_second_hand_over_is_a_second_message(
    url: str, provider: Ses
) -> None:
    client = boto3.client(
        "sesv2", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b", endpoint_url=url
    )
    client.create_email_identity(EmailIdentity="news@example.com")
    first, second = provider.send(message()), provider.send(message())
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert first.provider_id
    assert first.provider_id != second.provider_id


def test_a_sender_that_is_not_verified_is_not_accepted(provider: Ses) -> None:
    """In moto's words, which are not those of the real one (benches.py has those)."""
    wire = message().wire.replace(b"news@example.com", b"other@example.org")
    answer = provider.send(Message("other@example.org", "rita@example.com", wire))
    assert isinstance(answer, Refused), answer
    assert "other@example.org" in answer.reply.text
