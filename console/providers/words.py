"""What a provider's capabilities mean, in sentences for people. Pure."""

from console.providers.base import Capabilities, Idempotency


def abilities(capabilities: Capabilities) -> list[str]:
    """Gives what becomes of a message that is in doubt with this provider."""
    told = []
    if capabilities.idempotency is not Idempotency.NONE:
        hours = capabilities.window_s / 3600
        window = f"{hours:g} hours" if hours >= 1 else f"{capabilities.window_s / 60:g} minutes"
        window = "years" if hours > 24 * 365 else window
        told.append(f"A message in doubt may be handed over again for {window}: it makes one of the two.")
    if capabilities.may_look_up:
        told.append("A message in doubt is looked up in its records.")
    if capabilities.has_reports:
        told.append("Its reports settle messages in doubt.")
    if not told:
        told.append("A message in doubt waits for a person.")
    if not capabilities.keeps_message_id:
        told.append("It puts a Message-ID of its own in place of ours.")
    return told
