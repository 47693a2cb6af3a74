"""From which machine a request comes: through proxies that are trusted, through others, and directly."""

import pytest
import structlog
import visit
from flask import Flask
from sqlalchemy import Engine

from console.web import proxies


def _machine(app: Flask, peer: str, forwarded: str | None = None) -> str:
    """Gives what the app takes for the machine that a request comes from."""
    seen: list[str] = []
    app.before_request(lambda: seen.append(proxies.machine()))
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    app.test_client().get("/", headers=headers, environ_base={"REMOTE_ADDR": peer})
    return seen[0]


def _app(count: int) -> Flask:
    app = Flask(__name__)
    proxies.init_app(app, trusted_count=count)
    return app


@pytest.mark.parametrize(
    ("count", "forwarded", "machine"),
    [
        (0, None, "192.0.2.1"),
        (0, "203.0.113.7", "192.0.2.1"),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        (2, "198.51.100.1, 203.0.113.7, 10.0.0.1", "203.0.113.7"),
        # Passed by: fewer proxies than there are said to be.
        (1, None, "192.0.2.1"),
        (2, "203.0.113.7", "192.0.2.1"),
    ],
)
def test_the_outermost_trusted_proxy_says_which_machine_it_is(count: int, forwarded: str | None, machine: str) -> None:
    assert _machine(_app(count), "192.0.2.1", forwarded) == machine


@pytest.mark.parametrize(
    ("peer", "machine"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("no address", "no address"),
        ("x" * 5000, "x" * 45),
    ],
)
def test_whoever_has_a_network_of_their_own_is_one_machine(peer: str, machine: str) -> None:
    assert _machine(_app(0), peer) == machine


def test_only_the_address_is_taken_from_proxies(engine: Engine) -> None:
    app = visit.site(engine, trusted_proxies=1)
    headers = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    answer = app.test_client().get("/", headers=headers)
    assert answer.location.startswith("/accounts/sign-in")
    assert "evil.example" not in str(answer.headers)


def test_a_proxy_that_no_setting_speaks_of_is_told_once(engine: Engine) -> None:
    client = visit.site(engine).test_client()
    with structlog.testing.capture_logs() as logged:
        client.get("/healthz")
        assert not logged
        for _ in range(2):
            client.get("/healthz", headers={"X-Forwarded-For": "203.0.113.7"})
    assert [entry["event"] for entry in logged] == ["proxy.not_trusted"]
    assert "SENDONCE_TRUSTED_PROXIES" in logged[0]["hint"]


def test_a_trusted_proxy_is_no_news(engine: Engine) -> None:
    client = visit.site(engine, trusted_proxies=1).test_client()
    with structlog.testing.capture_logs() as logged:
        client.get("/healthz", headers={"X-Forwarded-For": "203.0.113.7"})
    assert not logged
