"""Fingerprints: what exactly an approver saw and approved. Pure.

SHA-256 over JSON with sorted keys, so that no two different contents are written alike (joined texts could be).
"""

import hashlib
import json
from datetime import UTC, datetime


def of_content(*, subject: str, sender: str, html: str, text: str, list_id: int) -> str:
    """Gives the fingerprint, 64 hex digits, of what would be sent and to which list."""
    return _digest({"subject": subject, "sender": sender, "html": html, "text": text, "list_id": list_id})


def of_approval(*, content: str, approver_id: int, scheduled_for: datetime) -> str:
    """Gives the fingerprint of an approval: which content, by whom, for when (an aware moment)."""
    return _digest(
        {"content": content, "approver_id": approver_id, "scheduled_for": scheduled_for.astimezone(UTC).isoformat()}
    )


def _digest(document: dict[str, str | int]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
