"""Settings, read once from SENDONCE_* variables, checked at start: a wrong value names itself and stops the start."""

import difflib
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from console.errors import ConfigError
from console.files import make_data_dir, write_once

DEVELOPMENT_KEY = "sendonce-development-key"
RATE_PERIODS_S = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Rate:
    """A pace: at most `count` messages in any `period_s` seconds."""

    count: int
    period_s: float


@dataclass(frozen=True)
class Settings:
    """All settings of one process. Durations are seconds."""

    database_url: str | None
    data_dir: Path
    secret_key: str
    base_url: str
    trusted_proxies: int
    sender: str
    smtp_url: str
    tick_s: float
    batch_size: int
    connections: int
    heartbeat_s: float
    dead_after_s: float
    max_rate: Rate | None
    retry_base_s: float
    late_limit_h: float
    smtp_dot_timeout_s: float
    smtp_timeout_s: float
    inbox_body_days: int
    log_format: str
    log_calls: str
    postfix_dir: Path | None
    debug: bool

    @property
    def is_https(self) -> bool:
        return self.base_url.startswith("https://")

    @property
    def default_sender(self) -> str:
        """The From field of message types that name none: SENDONCE_SENDER, else no-reply at the console's domain."""
        host = urlsplit(self.base_url).hostname or ""
        is_domain = "." in host and not host.replace(".", "").isdigit()
        return self.sender or f"no-reply@{host if is_domain else 'sendonce.example'}"


def default_data_dir() -> Path:
    """Gives the folder used when SENDONCE_DATA_DIR is not set: /var/lib/sendonce for root, else the XDG data folder."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/sendonce")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "sendonce"


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Reads and checks the settings.

    Raises: ConfigError naming the variable, its value and what it takes.
    """
    env = _Reader(os.environ if environ is None else environ)
    data_dir = Path(env.text("DATA_DIR", str(default_data_dir()))).expanduser().absolute()
    debug = env.flag("DEBUG", default=False)
    settings = Settings(
        database_url=_database_url(env.text("DATABASE_URL", "")),
        data_dir=data_dir,
        secret_key=_secret_key(env.text("SECRET_KEY", ""), data_dir=data_dir, debug=debug),
        base_url=env.url("BASE_URL", "http://127.0.0.1:8080", schemes=("http", "https")).rstrip("/"),
        trusted_proxies=env.integer("TRUSTED_PROXIES", 0, least=0, most=10),
        sender=env.text("SENDER", ""),
        smtp_url=env.url("SMTP_URL", "smtp://127.0.0.1:25", schemes=("smtp", "smtps")),
        tick_s=env.number("TICK_SECONDS", 5, least=0.05, most=3600),
        batch_size=env.integer("BATCH_SIZE", 20, least=1, most=1000),
        connections=env.integer("CONNECTIONS", 24, least=1, most=256),
        heartbeat_s=env.number("HEARTBEAT_SECONDS", 5, least=0.05, most=600),
        dead_after_s=env.number("DEAD_AFTER_SECONDS", 30, least=0.2, most=86400),
        max_rate=env.rate("MAX_RATE"),
        retry_base_s=env.number("RETRY_BASE_SECONDS", 30, least=0.01, most=86400),
        late_limit_h=env.number("LATE_LIMIT_HOURS", 24, least=0, most=24 * 365),
        smtp_dot_timeout_s=env.number("SMTP_DOT_TIMEOUT_SECONDS", 600, least=0.1, most=3600),
        smtp_timeout_s=env.number("SMTP_TIMEOUT_SECONDS", 300, least=0.1, most=3600),
        inbox_body_days=env.integer("INBOX_BODY_DAYS", 30, least=0, most=36500),
        log_format=env.choice("LOG_FORMAT", "auto", ("auto", "json", "text")),
        log_calls=env.choice("LOG_CALLS", "all", ("all", "single", "none")),
        postfix_dir=_folder(env.text("POSTFIX_DIR", "")),
        debug=debug,
    )
    env.refuse_unknown()
    if settings.dead_after_s < 2 * settings.heartbeat_s:
        raise ConfigError(
            f"SENDONCE_DEAD_AFTER_SECONDS is {settings.dead_after_s:g}, but must be at least twice"
            f" SENDONCE_HEARTBEAT_SECONDS ({settings.heartbeat_s:g}), or workers that live are declared dead."
        )
    return settings


class _Reader:
    """Reads one variable at a time and names it in every error."""

    def __init__(self, environ: Mapping[str, str]):
        self._environ = environ
        self._known: set[str] = set()

    def refuse_unknown(self) -> None:
        """A mistyped name would otherwise be passed over in silence, and a limit that was set would not hold."""
        known = {f"SENDONCE_{name}" for name in self._known}
        for name in sorted(self._environ.keys() - known):
            if name.startswith("SENDONCE_") and not name.startswith("SENDONCE_TEST_"):
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; {near[0]} is meant?" if near else "."
                raise ConfigError(f"{name} is set, but there is no such setting{hint}")

    def text(self, name: str, default: str) -> str:
        self._known.add(name)
        return self._environ.get(f"SENDONCE_{name}", "").strip() or default

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.text(name, "1" if default else "0").lower()
        if value not in {"0", "1", "true", "false", "yes", "no", "on", "off"}:
            raise self._wrong(name, value, "1 or 0")
        return value in {"1", "true", "yes", "on"}

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, default).lower()
        if value not in allowed:
            raise self._wrong(name, value, "one of " + ", ".join(allowed))
        return value

    def number(self, name: str, default: float, *, least: float, most: float) -> float:
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            raise self._wrong(name, text, f"a number from {least:g} to {most:g}") from None
        if not least <= value <= most:
            raise self._wrong(name, text, f"a number from {least:g} to {most:g}")
        return value

    def integer(self, name: str, default: int, *, least: int, most: int) -> int:
        text = self.text(name, str(default))
        try:
            value = int(text)
        except ValueError:
            raise self._wrong(name, text, f"a whole number from {least} to {most}") from None
        if not least <= value <= most:
            raise self._wrong(name, text, f"a whole number from {least} to {most}")
        return value

    def url(self, name: str, default: str, *, schemes: tuple[str, ...]) -> str:
        text = self.text(name, default)
        what = " or ".join(f"{scheme}://HOST[:PORT]" for scheme in schemes)
        try:
            parts = urlsplit(text)
            is_usable = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            is_usable = False
        if not is_usable:
            raise self._wrong(name, _without_password(text), what)
        return text

    def rate(self, name: str) -> Rate | None:
        text = self.text(name, "")
        if not text:
            return None
        count, _, period = text.partition("/")
        period = period or "s"
        if period not in RATE_PERIODS_S or not re.fullmatch("[0-9]{1,9}", count) or int(count) < 1:
            raise self._wrong(name, text, "a pace such as 50/s, 600/min or 5000/h (nothing for no limit)")
        return Rate(count=int(count), period_s=RATE_PERIODS_S[period])

    @staticmethod
    def _wrong(name: str, value: str, takes: str) -> ConfigError:
        return ConfigError(f"SENDONCE_{name} is {value!r}, but takes {takes}.")


def _folder(text: str) -> Path | None:
    return Path(text).expanduser().absolute() if text else None


def _without_password(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    return f"{scheme}{separator}***@{rest.rpartition('@')[2]}" if "@" in rest else text


def _database_url(text: str) -> str | None:
    if not text:
        return None
    scheme = text.partition("://")[0]
    try:
        port = urlsplit(text).port
        is_usable = scheme in {"postgresql", "postgres"} and (port is None or port > 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError(
            f"SENDONCE_DATABASE_URL is {_without_password(text)!r}, but takes postgresql://USER:PASSWORD@HOST/NAME"
            " (leave it empty for the embedded server)."
        )
    return text.replace("postgres://", "postgresql://", 1) if scheme == "postgres" else text


def _secret_key(given: str, *, data_dir: Path, debug: bool) -> str:
    if given == DEVELOPMENT_KEY and not debug:
        raise ConfigError(
            "SENDONCE_SECRET_KEY is the development key that everybody knows; set one of your own,"
            " or leave it empty to have one made and kept in the data directory."
        )
    if given and len(given) < 16:
        raise ConfigError("SENDONCE_SECRET_KEY is shorter than 16 characters; use a long random text.")
    if given:
        return given
    path = data_dir / "secret_key"
    try:
        make_data_dir(data_dir)
        write_once(path, secrets.token_urlsafe(48))
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"SENDONCE_DATA_DIR: the secret key {path} can't be made or read: {error}.") from None
    if len(key) < 16:
        raise ConfigError(f"The secret key in {path} is empty or too short; delete the file to have a new one made.")
    return key
