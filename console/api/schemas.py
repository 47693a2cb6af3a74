"""What the API takes, as JSON Schemas (2020-12): what is checked is what the document shows. Pure.

Each name in COMPONENTS is a component of the OpenAPI document; schemas refer to one another by ref().
Answers are in answer_schemas.py.
"""

from typing import Any

Schema = dict[str, Any]

BATCH_LIMIT = 500
LARGEST_ID = 2**63 - 1
PAGE_LIMIT = 200
LABELS_LIMIT = 20

# PostgreSQL keeps every character but this one.
NO_NUL = r"^[^\u0000]*$"
NOT_BLANK = r"^[^\u0000]*[^\s\u0000-\u001F\u007F-\u00A0][^\u0000]*$"
CORRELATION_ID = r"^[A-Za-z0-9._:/+=~-]{1,128}$"
# What a header can carry: visible ASCII, blanks inside.
HEADER_KEY = r"^[!-~]([ -~]*[!-~])?$"
# Why a pattern was not met, in words.
PATTERN_WORDS = {
    NO_NUL: "holds the zero character (NUL), which can't be kept",
    NOT_BLANK: "is blank, or holds the zero character (NUL)",
    CORRELATION_ID: "takes 1 to 128 of the characters A-Z, a-z, 0-9 and . _ : / + = ~ -",
    HEADER_KEY: "takes visible ASCII characters; put any other key into the body's dedupe_key",
}
FORMAT_WORDS = {
    "idn-email": "takes an e-mail address, such as ann@example.com",
    "date-time": "takes a moment with its offset (RFC 3339), such as 2027-03-04T05:06:07Z",
}

STATES = ["queued", "sending", "sent", "failed", "in_doubt", "dead", "suppressed", "cancelled", "expired"]
CAMPAIGN_STATES = ["draft", "submitted", "approved", "sending", "paused", "sent", "cancelled"]
SUPPRESSION_KINDS = ["manual", "unsubscribed", "bounced", "complained"]
TRIGGER_SOURCES = ["api", "web_request", "webhook", "cron", "background_job", "manual_admin", "sql", "import"]


def ref(name: str) -> Schema:
    """Gives a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def text(description: str, *, longest: int, pattern: str = NO_NUL, least: int = 1, **more: Any) -> Schema:
    """Gives the schema of a string of `least` to `longest` characters."""
    return {
        "type": "string", "minLength": least, "maxLength": longest, "pattern": pattern, "description": description,
        **more,
    }  # fmt: skip


def optional(schema: Schema) -> Schema:
    """Gives the schema that also takes null."""
    return {**schema, "type": [schema["type"], "null"]}


def closed(description: str, *, required: list[str], **properties: Schema) -> Schema:
    """Gives the schema of an object with these properties and no others."""
    return {
        "type": "object", "description": description, "required": required, "properties": properties,
        "additionalProperties": False,
    }  # fmt: skip


def listed(items: Schema) -> Schema:
    """Gives the schema of one page of a list."""
    return closed(
        "One page.",
        required=["items", "next"],
        items={"type": "array", "items": items},
        next={
            "type": ["integer", "null"], "minimum": 1, "maximum": LARGEST_ID,
            "description": "The value of `after` that reads on; null on the last page. A page may be short, or empty,"
            " and still have one.",
        },
    )  # fmt: skip


ADDRESS: Schema = {
    "type": "string", "format": "idn-email", "maxLength": 320, "pattern": NO_NUL, "examples": ["ann@example.com"]
}  # fmt: skip
MESSAGE_TYPE = text(
    "The name of one of the account's message types.", longest=100, examples=["parcel_shipped"]
)  # fmt: skip
DEDUPE_KEY = text(
    "The stable name of the business event: the same key never makes a second message within the message type's"
    " window. Made from the message type's key pattern when it is not given.",
    longest=500,
    examples=["parcel_shipped:987"],
)
CORRELATION = text(
    "Follows this request to the provider's id.", longest=128, pattern=CORRELATION_ID, examples=["req-5f2c"]
)
MOMENT: Schema = {"type": "string", "format": "date-time", "examples": ["2027-03-04T05:06:07Z"]}
ID: Schema = {"type": "integer", "minimum": 1, "maximum": LARGEST_ID}

# Any JSON that PostgreSQL can keep. Read with the patterns of strings and the bounds of numbers at once.
_JSON: Schema = {
    "description": "Any JSON value; numbers within 64 bits, no NUL characters, nested up to 32 levels.",
    "type": ["object", "array", "string", "number", "boolean", "null"],
    "pattern": NO_NUL,
    "minimum": -LARGEST_ID,
    "maximum": LARGEST_ID,
    "items": ref("Json"),
    "additionalProperties": ref("Json"),
    "propertyNames": {"pattern": NO_NUL},
}
_PARAMS: Schema = {
    "type": "object",
    "description": "What the message type's template asks for.",
    "additionalProperties": ref("Json"),
    "propertyNames": {"pattern": NO_NUL},
    "examples": [{"order_id": 987, "first_name": "Ann"}],
}


def _labels(description: str, *, types: str | list[str], **more: Any) -> Schema:
    return {
        "type": "object",
        "description": description,
        "maxProperties": LABELS_LIMIT,
        "propertyNames": {"minLength": 1, "maxLength": 50, "pattern": NO_NUL},
        "additionalProperties": {
            "type": types, "maxLength": 200, "pattern": NO_NUL, "minimum": -LARGEST_ID, "maximum": LARGEST_ID
        },
        **more,
    }  # fmt: skip


_EMAIL_REQUEST = closed(
    "One message to one recipient.",
    required=["to", "message_type"],
    to={**ADDRESS, "description": "The recipient."},
    message_type=MESSAGE_TYPE,
    params=_PARAMS,
    dedupe_key=optional(DEDUPE_KEY),
    correlation_id=optional(CORRELATION),
    trigger_source={"type": "string", "enum": TRIGGER_SOURCES, "default": "api", "description": "What caused it."},
    code_path=text(
        "Which code asked: a service and a function.", longest=200, least=0, examples=["shop.orders.confirm"]
    ),
    event=text("The business event.", longest=200, least=0, examples=["parcel.shipped"]),
    entities=_labels(
        "What it is about, by name: found again in searches, and in the key pattern.",
        types=["string", "integer"],
        examples=[{"order_id": "987"}],
    ),
    send_after=optional({**MOMENT, "description": "Not to be sent before; at once when not given."}),
    expires_after=optional(
        {
            **MOMENT,
            "description": "Not to be sent after; the message type's age cap holds too.",
            "examples": ["2027-03-05T05:06:07Z"],
        }
    ),
    metadata=_labels("Kept with the message and given back.", types="string"),
)
_BATCH_REQUEST = closed(
    "Up to 500 messages, each with its own result.",
    required=["emails"],
    emails={
        "type": "array", "minItems": 1, "maxItems": BATCH_LIMIT,
        "items": {"type": "object", "anyOf": [ref("EmailRequest"), True]},
        "description": "Each as the body of POST /emails. A wrong one gets a problem as its result and stops no other.",
    },
)  # fmt: skip
_SUPPRESSION_REQUEST = closed(
    "An address that is to get no mail from the account any more.",
    required=["email", "reason"],
    email={**ADDRESS, "description": "The address."},
    reason=text("Why, for whoever finds it later.", longest=500, pattern=NOT_BLANK, examples=["asked by phone"]),
)

COMPONENTS: dict[str, Schema] = {
    "Json": _JSON,
    "EmailRequest": _EMAIL_REQUEST,
    "BatchRequest": _BATCH_REQUEST,
    "SuppressionRequest": _SUPPRESSION_REQUEST,
}
