"""How each kind of provider reports: how its requests are known to be its own, and who reads them. The one list."""

from dataclasses import dataclass

from console.providers import amazon_reports, brevo_reports, mailjet_reports, postmark_reports, resend_reports
from console.providers.reports import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """One kind's way. The secret part of the address comes on top of every scheme."""

    read: Reader
    scheme: str = "none"  # of signatures.py; none: a user name and password may be asked for, and nothing else
    is_amazons: bool = False  # signed by SNS's own key instead
    id_header: str = ""
    id_path: str = ""
    type_path: str = ""
    # The answer when we can't store it now: one that makes it come again.
    busy_status: int = 503
    hint: str = ""  # where the address is to be entered


REPORTS: dict[str, Reports] = {
    "resend": Reports(
        read=resend_reports.read,
        scheme="standard_webhooks",
        id_header="svix-id",
        type_path="$.type",
        hint="Resend shows the signing secret (whsec_…) when the address is entered under Webhooks.",
    ),
    # None of the three gives its events an id: the same body is the same event.
    "brevo": Reports(
        read=brevo_reports.read,
        type_path="$.event",
        # It throws an event away at any 4xx or 5xx but this.
        busy_status=429,
        hint="Enter it under Transactional, Settings, Webhook.",
    ),
    "postmark": Reports(
        read=postmark_reports.read, type_path="$.RecordType", hint="Enter it under the message stream's Webhooks."
    ),
    "mailjet": Reports(
        read=mailjet_reports.read, type_path="$.event", hint="Enter it under Account settings, Event tracking."
    ),
    "ses": Reports(
        read=amazon_reports.read,
        is_amazons=True,
        id_path="$.MessageId",
        type_path="$.Type",
        hint="Subscribe it by HTTPS to the SNS topic that the configuration set publishes to. Set the topic with the"
        " provider, and the subscription is confirmed by itself.",
    ),
}
