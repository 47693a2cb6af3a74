"""From a configured provider to its adapter: the one place that makes one."""

from console.config import Settings
from console.errors import ConfigError
from console.providers.base import Capabilities, Provider
from console.providers.kinds import KINDS, Made
from console.providers.smtp import Smtp
from console.providers.store import Configured
from console.secrets import unseal

# The installation's own server, in the routes of every account.
OWN = Smtp.name


def provider_for(settings: Settings) -> Provider:
    """Gives the installation's own provider, which the settings name."""
    return Smtp(settings)


def provider_name(settings: Settings) -> str:
    """Gives the name of the provider that the settings name, without making it (which reads certificates)."""
    return Smtp.name


def capabilities_of(row: Configured) -> Capabilities:
    """Gives what a configured provider can do; nothing when this program does not know its kind."""
    kind = KINDS.get(row.kind)
    return kind.capabilities if kind else Capabilities()


def open_provider(settings: Settings, row: Configured | None) -> Provider:
    """Gives the adapter of a configured provider; None: the installation's own.

    Connects to nothing yet. It knows the settings as they were: made anew when `row.version` has changed.
    Raises: ConfigError when the secret was sealed with another key, or a library is missing.
    """
    if row is None:
        return provider_for(settings)
    kind = KINDS.get(row.kind)
    if kind is None:
        raise ConfigError(f"The provider {row.name} is of the kind {row.kind!r}, which this program does not know.")
    secret = unseal(settings.secret_key, row.sealed_secret) if row.sealed_secret else ""
    made = Made(
        name=row.full_name,
        values=row.settings,
        secret=secret,
        settings=settings,
        folder=f"{row.account_id}/{row.name}",
    )
    return kind.make(made)
