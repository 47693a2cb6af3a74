"""From which machine a request comes, also behind proxies. Nothing else that proxies say is believed."""

from ipaddress import IPv6Address, ip_address, ip_network

import structlog
from flask import Flask, request
from werkzeug.middleware.proxy_fix import ProxyFix

log = structlog.get_logger(__name__)

# What one household or one rented server is given; whoever has it has all of its addresses (RFC 6177, 2).
_IPV6_PREFIX = 64


def init_app(app: Flask, *, trusted_count: int) -> None:
    """Lets the app see the address that the outermost of so many proxies saw.

    Takes: trusted_count, how many proxies each request passes; 0 when browsers reach the app directly. A request that
           passed fewer is taken as coming from the machine that it came from.
    """
    if trusted_count:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=trusted_count, x_proto=0, x_host=0)
    else:
        _Doubt().watch(app)


def machine() -> str:
    """Gives the machine that the present request comes from: an IPv4 address, or the /64 network of an IPv6 one."""
    given = request.remote_addr or ""
    try:
        address = ip_address(given)
    except ValueError:
        return given[:45]  # a Unix socket has none; a count too high takes what the client wrote
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), _IPV6_PREFIX), strict=False))


class _Doubt:
    """Tells the log, once, that a proxy seems to be in front of which no setting says so."""

    def __init__(self) -> None:
        self._has_told = False

    def watch(self, app: Flask) -> None:
        app.before_request(self._look)

    def _look(self) -> None:
        if not self._has_told and "X-Forwarded-For" in request.headers:
            self._has_told = True
            log.warning(
                "proxy.not_trusted",
                hint="Requests carry X-Forwarded-For, but SENDONCE_TRUSTED_PROXIES is 0: all people behind the proxy"
                " count as one machine, and failed sign-ins of one lock out all.",
            )
