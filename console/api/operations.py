"""The table of all that can be called: path, scope, what it takes and what it answers. Pure.

The views serve what stands here (gate_views.serves), and the document is made from it (document.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from console.api.schemas import (
    ADDRESS,
    CAMPAIGN_STATES,
    CORRELATION,
    DEDUPE_KEY,
    HEADER_KEY,
    LARGEST_ID,
    MESSAGE_TYPE,
    PAGE_LIMIT,
    STATES,
    Schema,
)

KB = 1024
PAGE_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One way in which an operation succeeds; `component` is its body (None: none), headers are those of its own."""

    words: str
    component: str | None = None
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing that can be called. `refusals` are statuses of its own, beside those that all operations have."""

    method: str
    path: str
    summary: str
    area: str
    scope: str
    answers: Mapping[int, Answer]
    query: Mapping[str, Schema] = field(default_factory=dict)
    headers: Mapping[str, Schema] = field(default_factory=dict)
    body: str | None = None
    largest_body_bytes: int = 0
    refusals: tuple[int, ...] = ()


_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": PAGE_LIMIT, "default": PAGE_ROWS}
_AFTER: Schema = {
    "type": "integer", "minimum": 1, "maximum": LARGEST_ID, "description": "`next` of the page before this one."
}  # fmt: skip
_PAGING = {"limit": {**_LIMIT, "description": "How many rows a page has at most."}, "after": _AFTER}
_RECIPIENT: Schema = {**ADDRESS, "description": "Compared as addresses are: in lower case."}
_IDEMPOTENCY_KEY: Schema = {
    **DEDUPE_KEY, "pattern": HEADER_KEY, "description": "The same as `dedupe_key` of the body."
}  # fmt: skip

OPERATIONS: dict[str, Operation] = {
    "send_email": Operation(
        method="POST",
        path="/emails",
        summary="Hand in a message",
        area="emails",
        scope="send",
        headers={"Idempotency-Key": _IDEMPOTENCY_KEY},
        body="EmailRequest",
        largest_body_bytes=256 * KB,
        answers={
            202: Answer(words="It stands in the ledger and will be sent.", component="Receipt", headers=("Location",)),
            200: Answer(
                words="The key's message was there before; nothing was added.",
                component="Receipt",
                headers=("Location", "Idempotent-Replayed"),
            ),
        },
        refusals=(404, 409, 422),
    ),
    "send_emails": Operation(
        method="POST",
        path="/emails/batch",
        summary="Hand in up to 500 messages",
        area="emails",
        scope="send",
        body="BatchRequest",
        largest_body_bytes=4096 * KB,
        answers={200: Answer(words="Each message has its own result.", component="Batch")},
    ),
    "list_emails": Operation(
        method="GET",
        path="/emails",
        summary="List messages, the newest first",
        area="emails",
        scope="read",
        query={
            "recipient": _RECIPIENT,
            "state": {"type": "string", "enum": STATES},
            "message_type": MESSAGE_TYPE,
            "correlation_id": CORRELATION,
            **_PAGING,
        },
        answers={200: Answer(words="A page.", component="EmailPage")},
    ),
    "show_email": Operation(
        method="GET",
        path="/emails/{email_id}",
        summary="Show a message with its attempts and triggers",
        area="emails",
        scope="read",
        answers={200: Answer(words="The message.", component="EmailDetail")},
        refusals=(404,),
    ),
    "cancel_email": Operation(
        method="POST",
        path="/emails/{email_id}/cancel",
        summary="Cancel a message that still waits",
        area="emails",
        scope="send",
        answers={200: Answer(words="It is cancelled and will not be sent.", component="Email")},
        refusals=(404, 409),
    ),
    "list_suppressions": Operation(
        method="GET",
        path="/suppressions",
        summary="List addresses that get no mail, the newest first",
        area="suppressions",
        scope="read",
        query={"email": _RECIPIENT, **_PAGING},
        answers={200: Answer(words="A page.", component="SuppressionPage")},
    ),
    "add_suppression": Operation(
        method="POST",
        path="/suppressions",
        summary="Stop all mail to an address",
        area="suppressions",
        scope="suppress",
        body="SuppressionRequest",
        largest_body_bytes=16 * KB,
        answers={
            201: Answer(words="From now on.", component="Suppression", headers=("Location",)),
            200: Answer(words="It was stopped before; nothing was changed.", component="Suppression"),
        },
        refusals=(422,),
    ),
    "show_suppression": Operation(
        method="GET",
        path="/suppressions/{suppression_id}",
        summary="Show a suppression",
        area="suppressions",
        scope="read",
        answers={200: Answer(words="The suppression.", component="Suppression")},
        refusals=(404,),
    ),
    "remove_suppression": Operation(
        method="DELETE",
        path="/suppressions/{suppression_id}",
        summary="Allow mail to an address again",
        area="suppressions",
        scope="suppress",
        answers={204: Answer(words="It is gone.")},
        refusals=(404, 409),
    ),
    "list_campaigns": Operation(
        method="GET",
        path="/campaigns",
        summary="List campaigns, the newest first",
        area="campaigns",
        scope="read",
        query={"status": {"type": "string", "enum": CAMPAIGN_STATES}, **_PAGING},
        answers={200: Answer(words="A page.", component="CampaignPage")},
    ),
    "show_campaign": Operation(
        method="GET",
        path="/campaigns/{campaign_id}",
        summary="Show a campaign with its figures",
        area="campaigns",
        scope="read",
        answers={200: Answer(words="The campaign.", component="Campaign")},
        refusals=(404,),
    ),
}
