"""The kinds of providers there are: what each wants to know, what it can do, and how it is made. The one list of them.

A new kind gets a module for its adapter, an entry here, its name in the CHECK of models.py, and a bench in the tests.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from console.config import Settings
from console.errors import ConfigError, InvalidInput
from console.providers import brevo, mailjet, postmark, resend
from console.providers.base import Capabilities, Provider
from console.providers.folder import Folder
from console.providers.http_api import ANSWER_TIMEOUT_S, Api, HttpProvider
from console.providers.smtp import Smtp, SmtpServer

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Something that is not secret; kept and shown as text."""

    name: str
    label: str
    default: str = ""  # empty: it must be given, unless it is optional
    is_optional: bool = False
    choices: tuple[str, ...] = ()
    hint: str = ""
    check: Callable[[str], str] = str.strip  # gives it as it is kept; raises ValueError saying what it takes
    # It says whom the secret is sent to: a change of it wants the secret anew, or it could be led astray.
    guards_secret: bool = False
    # Only whoever has the machine may set it: the server would call any address for anybody else.
    is_for_commands: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What an adapter is made from; `name` is one in the whole installation, `folder` is the provider's own."""

    name: str
    values: Mapping[str, str]
    secret: str
    settings: Settings
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of provider."""

    label: str
    settings: tuple[Setting, ...]
    secret_label: str  # empty: there is none
    capabilities: Capabilities
    make: Callable[[Made], Provider]
    is_secret_optional: bool = False


def checked_values(kind: Kind, given: Mapping[str, str], *, is_command: bool) -> dict[str, str]:
    """Gives all settings of a provider as they are kept.

    Raises: InvalidInput naming the setting.
    """
    known = {each.name: each for each in kind.settings}
    for name in given:
        if name not in known:
            takes = ", ".join(known) or "none"
            raise InvalidInput(f"{kind.label} has no setting {name[:40]!r}; it takes {takes}.", field=name)
        if known[name].is_for_commands and not is_command:
            raise InvalidInput(f"The setting {name} can be changed by the command sendonce provider only.", field=name)
    return {name: value for name, each in known.items() if (value := _checked(each, given.get(name, "")))}


def _checked(setting: Setting, given: str) -> str:
    value = given.strip() or setting.default
    if not value:
        if setting.is_optional:
            return ""
        raise InvalidInput(f"Fill in {setting.label} (setting {setting.name}).", field=setting.name)
    if setting.choices and value not in setting.choices:
        raise InvalidInput(f"{setting.label} is one of {', '.join(setting.choices)}.", field=setting.name)
    try:
        return setting.check(value)
    except ValueError as error:
        raise InvalidInput(f"{setting.label}: {error}", field=setting.name) from None


def _plain(value: str) -> str:
    if len(value) > 500 or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("it takes up to 500 ASCII characters without blanks.")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("it takes a host's name or address, such as smtp.example.com.")
    return value


def _port(value: str) -> str:
    if not (value.isascii() and value.isdigit() and 0 < int(value[:6]) < 65_536):
        raise ValueError("it takes a number from 1 to 65535.")
    return str(int(value))


def _seconds(value: str) -> str:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 600:
        raise ValueError("it takes seconds, from 0.1 to 600.")
    return f"{seconds:g}"


def _base_url(value: str) -> str:
    parts = urlsplit(_plain(value))
    is_usable = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    if not is_usable or parts.username or parts.password:
        raise ValueError("it takes https://HOST[:PORT][/PATH], without a user.")
    return value.rstrip("/")


def _about_url(default: str, *, label: str = "Base URL") -> Setting:
    return Setting(
        name="base_url",
        label=label,
        default=default,
        is_optional=not default,
        check=_base_url,
        guards_secret=True,
        is_for_commands=True,
        hint="Another address for its API, such as a proxy's.",
    )


_TIMEOUT = Setting(
    name="timeout_s",
    label="Seconds to wait for an answer",
    default=f"{ANSWER_TIMEOUT_S:g}",
    check=_seconds,
    hint="After that a message is in doubt.",
)


def _by_http(api: Callable[[Made], Api]) -> Callable[[Made], Provider]:
    def make(made: Made) -> Provider:
        return HttpProvider(
            made.name,
            api(made),
            base_url=made.values["base_url"],
            secrets=(made.secret,),
            timeout_s=float(made.values["timeout_s"]),
        )

    return make


def _smtp(made: Made) -> Provider:
    values = made.values
    server = SmtpServer(
        host=values["host"],
        port=int(values["port"]),
        user=values.get("user"),
        password=made.secret,
        is_implicit_tls=values["tls"] == "implicit",
        tls="off" if values["tls"] == "implicit" else values["tls"],
        is_verified=values["verify"] == "yes",
    )
    return Smtp(made.settings, name=made.name, server=server)


def _ses(made: Made) -> Provider:
    try:
        # Its library is large and not everybody's: an extra, and read in only where it is used.
        adapter: Any = importlib.import_module("console.providers.ses")
    except ImportError:
        raise ConfigError(
            "Amazon SES needs the library boto3, which is not installed. Install it with: pip install 'sendonce[ses]'"
        ) from None
    return adapter.Ses(
        made.name,
        region=made.values["region"],
        access_key=made.values["access_key"],
        secret_key=made.secret,
        configuration_set=made.values.get("configuration_set"),
        endpoint_url=made.values.get("base_url"),
        timeout_s=float(made.values["timeout_s"]),
    )


def _folder(made: Made) -> Provider:
    return Folder(made.name, folder=made.settings.data_dir / "outbox" / made.folder)


KINDS: dict[str, Kind] = {
    "smtp": Kind(
        label="SMTP server",
        settings=(
            Setting(name="host", label="Host", check=_host, guards_secret=True),
            Setting(name="port", label="Port", default="587", check=_port, guards_secret=True),
            Setting(
                name="tls",
                label="TLS",
                default="require",
                choices=("require", "auto", "implicit", "off"),
                hint="require: by STARTTLS or not at all; auto: where it is offered; implicit: from the first byte.",
                guards_secret=True,
            ),
            Setting(
                name="verify", label="Verify its certificate", default="yes", choices=("yes", "no"), guards_secret=True
            ),
            Setting(name="user", label="User", is_optional=True, check=_plain, hint="Empty: without signing in."),
        ),
        secret_label="Password",
        is_secret_optional=True,
        capabilities=Smtp.capabilities,
        make=_smtp,
    ),
    "resend": Kind(
        label="Resend",
        settings=(_TIMEOUT, _about_url(resend.BASE_URL)),
        secret_label="API key",
        capabilities=resend.Resend.capabilities,
        make=_by_http(lambda made: resend.Resend(api_key=made.secret)),
    ),
    "brevo": Kind(
        label="Brevo",
        settings=(_TIMEOUT, _about_url(brevo.BASE_URL)),
        secret_label="API key",
        capabilities=brevo.Brevo.capabilities,
        make=_by_http(lambda made: brevo.Brevo(api_key=made.secret)),
    ),
    "postmark": Kind(
        label="Postmark",
        settings=(
            Setting(name="stream", label="Message stream", default="outbound", check=_plain),
            _TIMEOUT,
            _about_url(postmark.BASE_URL),
        ),
        secret_label="Server API token",
        capabilities=postmark.Postmark.capabilities,
        make=_by_http(lambda made: postmark.Postmark(token=made.secret, stream=made.values["stream"])),
    ),
    "mailjet": Kind(
        label="Mailjet",
        settings=(
            Setting(name="api_key", label="API key", check=_plain),
            _TIMEOUT,
            _about_url(mailjet.BASE_URL),
        ),
        secret_label="Secret key",
        capabilities=mailjet.Mailjet.capabilities,
        make=_by_http(lambda made: mailjet.Mailjet(api_key=made.values["api_key"], secret_key=made.secret)),
    ),
    "ses": Kind(
        label="Amazon SES",
        settings=(
            Setting(name="region", label="Region", check=_host, hint="Such as eu-west-1.", guards_secret=True),
            Setting(name="access_key", label="Access key id", check=_plain),
            Setting(
                name="configuration_set",
                label="Configuration set",
                is_optional=True,
                check=_plain,
                hint="The one that publishes events; without it nothing is reported back.",
            ),
            Setting(
                name="topic_arn",
                label="Topic of its reports",
                is_optional=True,
                check=_plain,
                hint="arn:aws:sns:… Only this topic is believed, and its subscription is confirmed by itself.",
            ),
            _TIMEOUT,
            _about_url("", label="Endpoint URL"),
        ),
        secret_label="Secret access key",
        capabilities=Capabilities(has_reports=True),
        make=_ses,
    ),
    "file": Kind(
        label="Folder of files (for development)",
        settings=(),
        secret_label="",
        capabilities=Folder.capabilities,
        make=_folder,
    ),
}
