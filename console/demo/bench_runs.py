"""Sends whole campaigns as fast as it goes, and takes the time from the ledger: the figures of dispatch."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import psutil

from console.campaigns import store as campaigns
from console.campaigns.service import Draft
from console.campaigns.ticks import build_audiences, start_due
from console.content.compile import compile_content
from console.content.fill import fill
from console.db import transaction
from console.demo import bench_fill, stage, store
from console.demo.children import Children
from console.demo.crew import Crew
from console.demo.place import Place
from console.demo.postfix import Postfix
from console.demo.stage import SignIn
from console.errors import SendonceError

LIMIT_S = 1800.0
LOOK_EVERY_S = 0.25
PAPER = Draft(
    name="Bench",
    list_id=0,
    subject=bench_fill.NEWSLETTER.subject,
    sender=bench_fill.NEWSLETTER.sender,
    html=bench_fill.NEWSLETTER.html,
    text=bench_fill.NEWSLETTER.text,
)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Prepared:
    """A campaign whose rows are queued."""

    account_id: int
    slug: str
    campaign_id: int
    recipients: int
    people: dict[str, SignIn]


@dataclass(frozen=True)
class Run:
    """What one campaign took; `busy_cores` is what all on the machine did meanwhile, database and sink included."""

    recipients: int
    messages_per_s: float
    first_tenth_per_s: float
    last_tenth_per_s: float
    busy_cores: float = 0.0


def message_bytes() -> int:
    """Gives the size of the messages that are sent."""
    return len(fill(compile_content(bench_fill.NEWSLETTER), bench_fill.recipients(1)[0], bench_fill.HEADERS).wire)


def prepare(place: Place, *, recipients: int) -> Prepared:
    """Makes an account with so many people, and an approved campaign to them whose sends are reserved."""
    slug = f"bench-{next(_numbers)}"
    with transaction(place.engine) as session:
        account_id, people = stage.make_account(session, slug, name="Bench", roles=("marketer", "approver", "admin"))
        list_id = store.insert_people(session, account_id, list_name="Bench", people=_people(recipients))
        campaign_id = stage.approved_campaign(session, account_id, draft=replace(PAPER, list_id=list_id), people=people)
    start_due(place.engine, place.settings)
    while build_audiences(place.engine, place.settings):
        pass
    store.settle(place.engine)
    return Prepared(account_id=account_id, slug=slug, campaign_id=campaign_id, recipients=recipients, people=people)


def send(place: Place, postfix: Postfix, *, recipients: int, workers: int = 1) -> Run:
    """Sends a campaign into a fresh smtp-sink by so many worker processes.

    Raises: SendonceError when it does not end, or not every message is sent.
    """
    prepared = prepare(place, recipients=recipients)
    with Children(place.folder) as children:
        _, port = postfix.start_sink(children)
        environ = place.environ | {"SENDONCE_SMTP_URL": f"smtp://127.0.0.1:{port}"}
        crew = Crew(children, environ, place.engine, dead_after_s=place.settings.dead_after_s, size=workers)
        crew.start()
        crew.wait_until_alive()
        began, busy_s = time.monotonic(), _busy_s()
        wait_until_sent(place, prepared, crew)
        busy_cores = (_busy_s() - busy_s) / (time.monotonic() - began)
    return replace(run_of(place, prepared), busy_cores=busy_cores)


def wait_until_sent(place: Place, prepared: Prepared, crew: Crew | None = None) -> None:
    """Returns when no row is queued or sending.

    Raises: SendonceError when that takes too long.
    """
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        with transaction(place.engine) as session:
            counts = campaigns.show(session, prepared.account_id, prepared.campaign_id).counts
        if counts["queued"] + counts["sending"] == 0:
            if counts["sent"] != prepared.recipients:
                raise SendonceError(f"Only {counts['sent']} of {prepared.recipients} messages were sent: {counts}.")
            return
        if crew is not None:
            crew.check()
        time.sleep(LOOK_EVERY_S)
    raise SendonceError(f"The campaign was not through after {LIMIT_S:g} s.")


def run_of(place: Place, prepared: Prepared) -> Run:
    """Reads from the ledger how fast a campaign was: from its first outcome on record to its last."""
    with transaction(place.engine) as session:
        at_s = store.finish_moments(session, prepared.account_id, prepared.campaign_id)
    tenth = max(1, len(at_s) // 10)
    return Run(
        recipients=len(at_s),
        messages_per_s=len(at_s) / (at_s[-1] - at_s[0]),
        first_tenth_per_s=tenth / (at_s[tenth] - at_s[0]),
        last_tenth_per_s=tenth / (at_s[-1] - at_s[-1 - tenth]),
    )


def feed(place: Place, postfix: Postfix, *, message_count: int) -> float:
    """Gives how many messages per second smtp-source feeds into a fresh smtp-sink: the reference."""
    with Children(place.folder) as children:
        _, port = postfix.start_sink(children)
        return postfix.feed(port, message_count=message_count, message_bytes=message_bytes())


def against_reference(place: Place, postfix: Postfix, *, recipients: int) -> dict[str, Any]:
    """Measures one worker process between two runs of the reference."""
    before = feed(place, postfix, message_count=recipients)
    run = send(place, postfix, recipients=recipients)
    after = feed(place, postfix, message_count=recipients)
    reference = median((before, after))
    return {
        "recipients": recipients,
        "message_bytes": message_bytes(),
        "messages_per_s": round(run.messages_per_s, 1),
        "reference_per_s": round(reference, 1),
        "reference_runs_per_s": [round(before, 1), round(after, 1)],
        "ratio": round(run.messages_per_s / reference, 3),
    }


def tenths(place: Place, postfix: Postfix, *, recipients: int) -> dict[str, Any]:
    """Measures whether a campaign is as fast at its end as at its start."""
    run = send(place, postfix, recipients=recipients)
    return {
        "recipients": recipients,
        "messages_per_s": round(run.messages_per_s, 1),
        "first_tenth_per_s": round(run.first_tenth_per_s, 1),
        "last_tenth_per_s": round(run.last_tenth_per_s, 1),
        "ratio": round(run.last_tenth_per_s / run.first_tenth_per_s, 3),
    }


def two_workers(place: Place, postfix: Postfix, *, recipients: int) -> dict[str, Any]:
    """Measures two worker processes against one, in turns, since a machine's speed changes from minute to minute.

    The figure `ceiling` is what any number of workers could reach at the same work for each message: the machine's
    cores by those that one worker, the database and the sink keep busy already.
    """
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for workers in (1, 2, 1, 2, 1):
        runs[workers].append(send(place, postfix, recipients=recipients, workers=workers))
    one, two = (median(run.messages_per_s for run in runs[workers]) for workers in (1, 2))
    busy_cores = median(run.busy_cores for run in runs[1])
    return {
        "recipients": recipients,
        "two_per_s": round(two, 1),
        "one_per_s": round(one, 1),
        "two_runs_per_s": [round(run.messages_per_s, 1) for run in runs[2]],
        "one_runs_per_s": [round(run.messages_per_s, 1) for run in runs[1]],
        "one_busy_cores": round(busy_cores, 2),
        "ceiling": round((psutil.cpu_count() or 1) / busy_cores, 2),
        "ratio": round(two / one, 3),
    }


def _busy_s() -> float:
    """Gives the seconds of processor time that the machine has spent on anything since it started."""
    times = psutil.cpu_times()
    return times.user + times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)


def _people(count: int) -> Iterator[tuple[str, Any]]:
    for person in bench_fill.recipients(count):
        yield person.email, person.values
