"""The one place that knows which providers there are."""

from console.config import Settings
from console.providers.base import Provider
from console.providers.smtp import Smtp


def provider_for(settings: Settings) -> Provider:
    """Gives the provider that the settings name."""
    return Smtp(settings)
