"""How long urgent messages take beside a campaign at full speed, from the call of the API to the mailbox's 250.

And what they cost the campaign: its speed against that of the same campaign alone, before and after in the same run.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from http.client import HTTPConnection
from statistics import median
from typing import Any

from console.accounts import keys
from console.db import transaction
from console.demo import bench_runs
from console.demo.bench_pages import percentile_ms, start_console
from console.demo.bench_runs import Prepared
from console.demo.children import Children
from console.demo.place import Place
from console.demo.post_office import PostOffice, open_post_office
from console.errors import SendonceError
from console.sends import message_types
from console.sends.type_store import TypeRow

MESSAGES = 200
# The calls are spread over this share of the campaign, behind its start.
SPREAD_SHARE = 0.7
BEGIN_SHARE = 0.1
ARRIVE_LIMIT_S = 60.0
MESSAGE_TYPE = TypeRow(
    name="reset", lane="urgent", template="reset", sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern="reset:{number}", in_doubt_policy="hold", attempt_cap=12, age_cap_s=900,
)  # fmt: skip


@dataclass
class Caller:
    """A program that hands urgent messages in, one after the other, and remembers when it asked."""

    port: int
    key: str
    asked_at: dict[str, float] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)

    def call(self, message_count: int, *, pause_s: float) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        next_at = time.monotonic()
        for number in range(message_count):
            time.sleep(max(0.0, next_at - time.monotonic()))
            next_at += pause_s
            email = f"urgent{number}@example.com"
            body = {"to": email, "message_type": MESSAGE_TYPE.name, "params": {"number": number, "code": "471100"}}
            self.asked_at[email] = time.time()
            connection.request("POST", "/api/v1/emails", json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            self.statuses[answer.status] += 1


@dataclass(frozen=True)
class Taken:
    """One campaign: how fast it was, how long each urgent message took, how many calls were not answered by 202."""

    messages_per_s: float
    took_s: list[float]
    error_count: int


def measure(place: Place, *, recipients: int, message_count: int) -> dict[str, Any]:
    """Measures a campaign with urgent messages between two without.

    Raises: SendonceError when a message does not arrive, or something does not run.
    """
    before = _run(place, recipients=recipients, message_count=0, pause_s=0.0)
    pause_s = SPREAD_SHARE * recipients / before.messages_per_s / message_count
    both = _run(place, recipients=recipients, message_count=message_count, pause_s=pause_s)
    after = _run(place, recipients=recipients, message_count=0, pause_s=0.0)
    alone = median((before.messages_per_s, after.messages_per_s))
    return {
        "recipients": recipients,
        "messages": len(both.took_s),
        "p50_ms": percentile_ms(both.took_s, 50),
        "p99_ms": percentile_ms(both.took_s, 99),
        "most_ms": round(1000 * max(both.took_s), 1),
        "errors": both.error_count,
        "campaign_per_s": round(both.messages_per_s, 1),
        "alone_per_s": round(alone, 1),
        "alone_runs_per_s": [round(before.messages_per_s, 1), round(after.messages_per_s, 1)],
        "loss": round(1 - both.messages_per_s / alone, 3),
    }


def _run(place: Place, *, recipients: int, message_count: int, pause_s: float) -> Taken:
    prepared = bench_runs.prepare(place, recipients=recipients)
    key = _open_door(place, prepared)
    with Children(place.folder) as children:
        mailbox = open_post_office(children, environ=place.environ, has_moments=True)
        _, port = start_console(children, place.environ | {"SENDONCE_SMTP_URL": mailbox.url})
        caller = Caller(port, key)
        if message_count:
            _wait_for(mailbox, count=round(recipients * BEGIN_SHARE))
            caller.call(message_count, pause_s=pause_s)
        bench_runs.wait_until_sent(place, prepared)
        took_s = _took_s(mailbox, caller)
    return Taken(
        messages_per_s=bench_runs.run_of(place, prepared).messages_per_s,
        took_s=took_s,
        error_count=message_count - caller.statuses[202],
    )


def _open_door(place: Place, prepared: Prepared) -> str:
    """Gives a key by which the account's programs hand in messages of MESSAGE_TYPE."""
    with transaction(place.engine) as session:
        message_types.save_template(
            session, prepared.account_id, name="reset", subject="Your code", html="<p>It is {{ code }}.</p>"
        )
        message_types.put_type(session, prepared.account_id, MESSAGE_TYPE)
        return keys.add_key(session, prepared.account_id, scopes=["send"]).text


def _wait_for(mailbox: PostOffice, *, count: int) -> None:
    deadline = time.monotonic() + ARRIVE_LIMIT_S
    while mailbox.accepted_count() < count:
        if time.monotonic() > deadline:
            raise SendonceError(f"The campaign did not begin within {ARRIVE_LIMIT_S:g} s.")
        time.sleep(0.05)


def _took_s(mailbox: PostOffice, caller: Caller) -> list[float]:
    """Gives how long each message took. Raises: SendonceError when one does not arrive."""
    deadline = time.monotonic() + ARRIVE_LIMIT_S
    while True:
        taken_at = mailbox.moments()
        missing = caller.asked_at.keys() - taken_at.keys()
        if not missing:
            return [taken_at[email] - asked_at for email, asked_at in caller.asked_at.items()]
        if time.monotonic() > deadline:
            raise SendonceError(f"{len(missing)} urgent messages have not arrived, such as {min(missing)}.")
        time.sleep(0.2)
