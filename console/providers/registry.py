"""The one place that knows which providers there are."""

from console.config import Settings
from console.providers.base import Provider
from console.providers.smtp import Smtp


def provider_for(settings: Settings) -> Provider:
    """Gives the provider that the settings name."""
    return Smtp(settings)


def provider_name(settings: Settings) -> str:
    """Gives the name of the provider that the settings name, without making it (which reads certificates)."""
    return Smtp.name
