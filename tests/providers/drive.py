"""Drives one channel from a test: waits for the socket, gives the next result."""

import select
import time

from console import config
from console.providers.base import Answer, Channel, Message, Ready, Trouble
from console.providers.smtp import Smtp


def message(
    recipient: str = "rita@example.com", *, body: str = "Hello\r\n", message_id: str = "<1@example.com>"
) -> Message:
    """A small message."""
    wire = f"From: news@example.com\r\nTo: {recipient}\r\nMessage-ID: {message_id}\r\n\r\n{body}".encode()
    return Message("news@example.com", recipient, wire)


def smtp(url: str, **settings: str) -> Smtp:
    """The provider for the URL; `settings` are variables without their SENDONCE_."""
    environ = {f"SENDONCE_{name}": value for name, value in settings.items()}
    return Smtp(config.load({"SENDONCE_SMTP_URL": url, "SENDONCE_SECRET_KEY": "k" * 32, **environ}))


def channel(url: str, **settings: str) -> Channel:
    """An open channel to an SMTP server."""
    made = smtp(url, **settings).connect()
    assert not isinstance(made, Trouble), made
    return made


def until_ready(channel: Channel, what: Message) -> Answer | Ready | None:
    """Begins the message and waits for Ready, or for the answer that came instead."""
    return _wait(channel, channel.begin(what, time.monotonic()))


def hand_over(channel: Channel) -> Answer | Ready | None:
    """Sends the dot and waits for the answer."""
    return _wait(channel, channel.finish(time.monotonic()))


def listen(channel: Channel) -> Answer | Ready | None:
    """Waits for what is said of the message that followed."""
    return _wait(channel, channel.hear(time.monotonic()))


def deliver(channel: Channel, what: Message) -> Answer | Ready | None:
    """The whole way of one message."""
    result = until_ready(channel, what)
    return hand_over(channel) if isinstance(result, Ready) else result


def _wait(channel: Channel, result: Answer | Ready | None) -> Answer | Ready | None:
    give_up_at = time.monotonic() + 10
    while result is None and channel.is_open:
        now = time.monotonic()
        assert now < give_up_at, "the channel says nothing"
        if channel.deadline <= now:
            return channel.time_out()
        writers = [channel] if channel.wants_write else []
        select.select([channel], writers, [], max(0.0, min(channel.deadline, give_up_at) - now))
        result = channel.advance(time.monotonic())
    return result
