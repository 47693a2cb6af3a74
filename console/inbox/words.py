"""The states of events and rules, schemes and decisions, in words. Pure."""

from console.sends.words import Word

EVENT_WORDS: dict[str, Word] = {
    "stored": Word("Waiting", "◔", "wait", "It is stored and will be read in a moment."),
    "done": Word("Done", "✓", "good", "Its rule was run, and the message was asked for."),
    "no_rule": Word("No rule", "∅", "wait", "No rule that was on was for it. Nothing was sent."),
    "failed": Word("Failed", "✕", "bad", "Its rule could not do what it says. Nothing was sent."),
}

RULE_WORDS: dict[str, Word] = {
    "draft": Word("Draft", "✎", "wait", "It does nothing yet: this version has to be tried out and switched on."),
    "on": Word("On", "✓", "good", "It is run on every new event of its type."),
    "off": Word("Off", "–", "quiet", "It does nothing until it is switched on."),
}

SCHEMES: dict[str, str] = {
    "none": "None: the secret part of the address is all",
    "standard_webhooks": "Standard Webhooks (webhook-signature, svix-signature)",
    "hmac_sha256": "HMAC-SHA256 of the body in a header",
    "basic": "Basic: user name and password",
}

ID_SOURCES: dict[str, str] = {
    "header": "from a header",
    "body": "from the body",
    "hash": "no id was found, so the body's hash stands for it: the same body is the same event",
}

DECISIONS: dict[str, str] = {
    "accepted": "A message was made",
    "duplicate_suppressed": "The message was there already, so no second one was made",
    "duplicate_observed": "The message was there already; its type only observes, so another one was made",
    "suppressed": "The recipient is suppressed, so nothing is sent",
    "refused": "Refused",
}

# The same before it has happened.
TRIALS: dict[str, str] = {
    "accepted": "A message would be made",
    "duplicate_suppressed": "No message would be made, because there is one with this key",
    "duplicate_observed": "Another message would be made beside the one with this key, because the type only observes",
    "suppressed": "The recipient is suppressed, so nothing would be sent",
}

WARNINGS: dict[str, str] = {
    "key_looks_random": "The dedupe key looks random: one that is new each time keeps nobody from getting it twice.",
    "key_too_broad": "The dedupe key is too broad: it was used for another message with other parameters.",
}

NOTICES: dict[str, str] = {
    "same_id": "the same event id",
    "same_body": "equal bodies within 10 seconds",
}
