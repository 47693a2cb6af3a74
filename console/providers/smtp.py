"""SMTP: opens channels (connect, EHLO, STARTTLS, AUTH by the standard library), as the URL says.

URL: smtp://USER:PASSWORD@HOST:PORT?tls=auto|require|off&verify=yes|no, or smtps://... for TLS from the first byte.
"""

import base64
import os
import smtplib
import socket
import ssl
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, unquote, urlsplit

from console.config import Settings
from console.errors import ConfigError
from console.providers.base import Capabilities, Finding, Message, Trouble, Unknown
from console.providers.smtp_channel import Offers, SmtpChannel

_DEFAULT_PORTS = {"smtp": 25, "smtps": 465}
CONNECT_TIMEOUT_S = 30.0
# What is shorter is a part of many a word.
SHORTEST_SECRET = 6


@dataclass(frozen=True)
class SmtpServer:
    """Where and how to connect."""

    host: str
    port: int
    user: str | None
    password: str | None
    is_implicit_tls: bool
    tls: str  # auto: when offered; require; off
    is_verified: bool

    def without_password(self, text: str) -> str:
        """Gives the text with *** for the password, in the forms too in which AUTH says it (RFC 4616)."""
        if self.password is None or len(self.password) < SHORTEST_SECRET:
            return text
        for said in (self.password, f"\0{self.user}\0{self.password}"):
            text = text.replace(base64.b64encode(said.encode()).decode(), "***").replace(said, "***")
        return text


def parse_url(url: str) -> SmtpServer:
    """Reads SENDONCE_SMTP_URL.

    Raises: ConfigError naming the part that is wrong.
    """
    parts = urlsplit(url)
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    tls, verify = options.pop("tls", "auto"), options.pop("verify", "yes")
    if options:
        raise ConfigError(f"SENDONCE_SMTP_URL has the option {min(options)!r}, but takes only tls and verify.")
    if tls not in ("auto", "require", "off"):
        raise ConfigError(f"SENDONCE_SMTP_URL has tls={tls!r}, but takes auto, require or off.")
    if verify not in ("yes", "no"):
        raise ConfigError(f"SENDONCE_SMTP_URL has verify={verify!r}, but takes yes or no.")
    return SmtpServer(
        host=parts.hostname or "",
        port=parts.port or _DEFAULT_PORTS[parts.scheme],
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or "") if parts.username else None,
        is_implicit_tls=parts.scheme == "smtps",
        tls=tls,
        is_verified=verify == "yes",
    )


class Smtp:
    """See providers.base.Provider."""

    name = "smtp"  # the installation's own server; one that an account has configured gets another
    capabilities = Capabilities(keeps_message_id=True)

    def __init__(self, settings: Settings, *, name: str | None = None, server: SmtpServer | None = None):
        self.name = name or Smtp.name
        self._server = server or parse_url(settings.smtp_url)
        self._timeout_s = settings.smtp_timeout_s
        self._dot_timeout_s = settings.smtp_dot_timeout_s
        self._context = ssl.create_default_context()
        if not self._server.is_verified:
            self._context.check_hostname = False
            self._context.verify_mode = ssl.CERT_NONE

    def connect(self) -> SmtpChannel | Trouble:
        client = None
        try:
            client = self._client()
            client.timeout = min(CONNECT_TIMEOUT_S, self._timeout_s)
            code, words = client.connect(self._server.host, self._server.port)
            if code != 220:
                return self._give_up(client, Trouble(f"greeting {code} {_text(words)}", is_lasting=code // 100 == 5))
            trouble = self._introduce(client)
            if trouble is not None:
                return self._give_up(client, trouble)
            assert client.sock is not None
            sock = client.sock
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # smtplib's buffered reader is put away; the channel reads the socket itself.
            client.file = None
            client.sock = None
            return SmtpChannel(sock, _offers(client), timeout_s=self._timeout_s, dot_timeout_s=self._dot_timeout_s)
        except ssl.SSLCertVerificationError as error:
            return self._give_up(client, Trouble(f"certificate: {error.verify_message}", is_lasting=True))
        except smtplib.SMTPAuthenticationError as error:
            lasting = error.smtp_code // 100 == 5
            words = f"authentication: {error.smtp_code} {_text(error.smtp_error)}"
            return self._give_up(client, Trouble(words, is_lasting=lasting))
        except smtplib.SMTPResponseException as error:
            return self._give_up(client, Trouble(f"{error.smtp_code} {_text(error.smtp_error)}"))
        except (OSError, smtplib.SMTPException, ValueError) as error:
            return self._give_up(
                client, Trouble(getattr(error, "strerror", None) or str(error) or type(error).__name__)
            )

    def find(self, message: Message) -> Finding:
        return Unknown("an SMTP server can't be asked for a message")

    def check(self) -> Trouble | None:
        channel = self.connect()
        if isinstance(channel, Trouble):
            return channel
        channel.quit()
        return None

    def _client(self) -> smtplib.SMTP:
        client = (
            smtplib.SMTP_SSL(context=self._context, local_hostname=_own_name())
            if self._server.is_implicit_tls
            else smtplib.SMTP(local_hostname=_own_name())
        )
        # The name that the certificate must have; smtplib keeps it only when it connects while being made.
        client._host = self._server.host  # type: ignore[attr-defined]
        return client

    def _introduce(self, client: smtplib.SMTP) -> Trouble | None:
        """EHLO, TLS and sign-in; gives what stands in the way."""
        client.ehlo_or_helo_if_needed()
        server = self._server
        if not server.is_implicit_tls and server.tls != "off":
            if client.has_extn("starttls"):
                client.starttls(context=self._context)
                client.ehlo_or_helo_if_needed()
            elif server.tls == "require":
                return Trouble("the server does not offer STARTTLS, which tls=require asks for", is_lasting=True)
        if server.user is not None:
            if not client.has_extn("auth"):
                return Trouble("the server does not offer AUTH, but SENDONCE_SMTP_URL has a user", is_lasting=True)
            client.login(server.user, server.password or "")
        return None

    def _give_up(self, client: smtplib.SMTP | None, trouble: Trouble) -> Trouble:
        if client is not None:
            client.close()
        # Some servers say again what they were told, and a reason is logged and shown.
        return replace(trouble, reason=self._server.without_password(trouble.reason))


def _offers(client: smtplib.SMTP) -> Offers:
    size = client.esmtp_features.get("size", "").strip()
    return Offers(
        has_pipelining=client.has_extn("pipelining"),
        has_smtputf8=client.has_extn("smtputf8"),
        has_dsn=client.has_extn("dsn"),
        size_limit=int(size) if size.isdigit() and int(size) > 0 else None,
    )


def _own_name() -> str:
    """Gives the name for EHLO: the machine's own when it is a full one, else an address literal (RFC 5321, 4.1.4)."""
    name = os.uname().nodename if hasattr(os, "uname") else socket.gethostname()
    return name if "." in name else "[127.0.0.1]"


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _text(words: bytes | str) -> str:
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else words
