"""What a message is called towards a provider: a key for its idempotency, a tag in its records and reports. Pure.

Both hang on the Message-ID, which is made once per send and never again: two installations behind one account of a
provider, or a database that starts its numbers anew, never share a name.
"""

import re
import uuid
from dataclasses import dataclass

_OURS = uuid.UUID("6f0d7c0a-5a0e-4b57-9a4e-6c1f0b8f2d11")
# Letters, digits, _ and - only: what the narrowest provider takes in a tag (Amazon SES).
_TAG = re.compile(r"so-([0-9]{1,19})-([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Names:
    """See the module."""

    key: str
    tag: str


def names_of(account_id: int, send_id: int, message_id: str) -> Names:
    """Gives the names of a send: the same for each attempt."""
    made = uuid.uuid5(_OURS, f"{account_id} {send_id} {message_id}")
    return Names(key=str(made), tag=f"so-{send_id}-{made.hex[:16]}")


def tagged_send_id(tag: str) -> int | None:
    """Gives the number of the send that a tag speaks of, None when the tag is not one of ours.

    Whoever finds the send by it compares the whole tag with the one that the send has.
    """
    found = _TAG.fullmatch(tag)
    return int(found[1]) if found else None
