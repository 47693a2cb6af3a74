"""What the API gives, as JSON Schemas; tests hold every answer against them. Pure."""

from typing import Any

from console.api import schemas
from console.api.schemas import (
    CAMPAIGN_STATES,
    ID,
    LARGEST_ID,
    MOMENT,
    STATES,
    SUPPRESSION_KINDS,
    Schema,
    closed,
    listed,
    optional,
    ref,
)


def _string(description: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _number(description: str = "") -> Schema:
    return {"type": "integer", **({"description": description} if description else {})}


def _all_of(description: str, **properties: Schema) -> Schema:
    """Gives the schema of an answer: each of its properties is always there."""
    return closed(description, required=list(properties), **properties)


_STATUS = _string("Where the message is.", enum=STATES)
_FIELD_ERROR = _all_of(
    "What is wrong with one field.", field=_string("Its path, or a header's or parameter's name."), detail=_string()
)
_PROBLEM = closed(
    "A problem document (RFC 9457).",
    required=["type", "title", "status", "detail", "request_id"],
    type=_string("about:blank, or urn:sendonce:problem: with one word.", format="uri-reference"),
    title=_string(),
    status={"type": "integer", "minimum": 400, "maximum": 599},
    detail=_string("What happened and what to do next."),
    request_id=_string("Finds the request in our logs."),
    field=_string("The first of the fields that were refused."),
    errors={"type": "array", "items": ref("FieldError")},
    id={**ID, "description": "The message that has the dedupe key, or that is in another state."},
    differs={"type": "array", "items": {"type": "string"}, "description": "Which parts differ from the first message."},
    state=_string("The state that it is in now."),
)
_RECEIPT = closed(
    "The message that stands for the request: a new one, or for a duplicate the first one.",
    required=["id", "status", "duplicate", "message_id", "dedupe_key", "correlation_id"],
    id=ID,
    status=_STATUS,
    duplicate={"type": "boolean", "description": "Whether it was there before."},
    message_id=_string("Its Message-ID, the same at every attempt."),
    dedupe_key=_string(),
    correlation_id=_string(),
    warnings={"type": "array", "items": {"type": "string"}, "description": "What looks wrong about the dedupe key."},
)
_BATCH_RESULT = closed(
    "The result of one message of a batch: a receipt or a problem.",
    required=["status"],
    status={"type": "integer", "description": "The status that POST /emails would have answered."},
    email=ref("Receipt"),
    problem=ref("Problem"),
)
_BATCH = _all_of(
    "The results, in the order of the messages.",
    results={"type": "array", "items": ref("BatchResult"), "maxItems": schemas.BATCH_LIMIT},
)
_EMAIL_PROPERTIES: dict[str, Schema] = {
    "id": ID,
    "status": _STATUS,
    "to": _string(),
    "message_type": optional(_string("None for a message of a campaign.")),
    "campaign_id": {"type": ["integer", "null"], "minimum": 1, "maximum": LARGEST_ID},
    "lane": _string(enum=["urgent", "normal", "bulk"]),
    "dedupe_key": _string(),
    "message_id": _string(),
    "correlation_id": _string(),
    "attempts": _number("Hand-overs to a provider so far, and refusals before one."),
    "created_at": MOMENT,
    "due_at": {**MOMENT, "description": "Not to be sent before."},
    "expires_at": optional(MOMENT),
    "finished_at": optional(MOMENT),
    "provider_id": optional(_string("The provider's own id.")),
    "provider_reply": optional(_string("The provider's last words, or why there are none.")),
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
}
_ATTEMPT = _all_of(
    "One hand-over to a provider, or a refusal before it.",
    attempt_no=_number("From 1."),
    outcome=_string(enum=["accepted", "deferred", "refused", "no_answer"]),
    provider=_string(),
    phase=_string(),
    code=optional(_number()),
    reply=optional(_string()),
    handed_over_at=optional({**MOMENT, "description": "Empty when it ended before the hand-over."}),
    ended_at=MOMENT,
)
_TRIGGER = _all_of(
    "One request that led to the message, or would have led to a second one.",
    at=MOMENT,
    source=_string(),
    decision=_string(),
    code_path=_string(),
    correlation_id=_string(),
)
_EMAIL = _all_of("A message.", **_EMAIL_PROPERTIES)
_EMAIL_DETAIL = _all_of(
    "A message with its attempts and what asked for it.",
    **_EMAIL_PROPERTIES,
    attempt_list={"type": "array", "items": ref("Attempt")},
    triggers={"type": "array", "items": ref("Trigger"), "description": "The first 100, in order."},
)
_SUPPRESSION = _all_of(
    "An address that gets no mail from the account, or none from one of its lists.",
    id=ID,
    email=_string("The address as it is compared: in lower case."),
    list_id={"type": ["integer", "null"], "description": "The list that was left; null: no mail at all."},
    kind=_string(enum=SUPPRESSION_KINDS),
    reason=_string(),
    send_id={"type": ["integer", "null"], "description": "The message that it came from."},
    created_at=MOMENT,
)
_COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}, "description": "Messages by state."}
_CAMPAIGN = _all_of(
    "A campaign.",
    id=ID,
    name=_string(),
    status=_string(enum=CAMPAIGN_STATES),
    subject=_string(),
    sender=_string(),
    list_id=ID,
    list_name=_string(),
    version=_number("The version of its content."),
    scheduled_for=optional(MOMENT),
    started_at=optional(MOMENT),
    finished_at=optional(MOMENT),
    created_at=MOMENT,
    correlation_id=optional(_string()),
    counts=_COUNTS,
)

COMPONENTS: dict[str, Schema] = {
    "Problem": _PROBLEM,
    "FieldError": _FIELD_ERROR,
    "Receipt": _RECEIPT,
    "BatchResult": _BATCH_RESULT,
    "Batch": _BATCH,
    "Attempt": _ATTEMPT,
    "Trigger": _TRIGGER,
    "Email": _EMAIL,
    "EmailDetail": _EMAIL_DETAIL,
    "EmailPage": listed(ref("Email")),
    "Suppression": _SUPPRESSION,
    "SuppressionPage": listed(ref("Suppression")),
    "Campaign": _CAMPAIGN,
    "CampaignPage": listed(ref("Campaign")),
}
