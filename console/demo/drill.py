"""The drill: sends a campaign while workers are killed and frozen at moments drawn from a seed, then judges it.

Against any SMTP server and database. The demo (demo.py) is the same with a story; the kill tests run this.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import Engine

from console.campaigns import store as campaigns
from console.db import transaction
from console.demo import stage, store
from console.demo.children import Children
from console.demo.crew import Crew
from console.demo.place import Place, require_quiet
from console.demo.post_office import PostOffice, open_post_office
from console.demo.verdict import Verdict, judge

ROLES = ("marketer", "approver")
LOOK_EVERY_S = 0.02
# After the last row is final, how long a row in doubt must have stayed so: a thawed worker's late word may settle it.
CALM_S = 1.5
# How long a frozen worker stays so at most when nobody takes its rows over, in multiples of DEAD_AFTER_SECONDS.
FREEZE_LIMIT = 5.0
# Small, so that a frozen worker is declared dead within seconds.
PACE = {
    "SENDONCE_TICK_SECONDS": "0.25",
    "SENDONCE_HEARTBEAT_SECONDS": "0.25",
    "SENDONCE_DEAD_AFTER_SECONDS": "1.5",
}

Tell = Callable[[str], None]
# Takes how many of how many messages are through.
Meter = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What a drill does; the same plan draws the same moments."""

    recipients: int = 5000
    kills: int = 6
    freezes: int = 2
    seed: int = 1
    dot_delay_ms: float = 5.0
    limit_s: float = 600.0


class Moment(NamedTuple):
    """When this share of the messages is through, and so many seconds later, the worker in the place is hit."""

    share: float
    wait_s: float
    action: str  # kill, freeze
    place: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a drill did and found."""

    account: str
    campaign_id: int
    seed: int
    kills: int
    freezes: int
    connections: int
    in_doubt_limit: int
    seconds: float
    messages_per_s: float
    verdict: Verdict

    def document(self) -> dict[str, Any]:
        """Gives the report for --json."""
        document = asdict(self)
        verdict = document.pop("verdict")
        return {"held": self.verdict.held, **verdict, **document}


def moments(plan: Plan) -> list[Moment]:
    """Draws when which of two workers is hit, in order."""
    dice = random.Random(plan.seed)
    actions = ["kill"] * plan.kills + ["freeze"] * plan.freezes
    drawn = [Moment(dice.uniform(0.03, 0.9), dice.uniform(0, 0.05), action, dice.randrange(2)) for action in actions]
    return sorted(drawn)


def people(count: int, *, seed: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Makes up so many subscribers."""
    dice = random.Random(seed)
    for number in range(count):
        yield f"d{number:07d}.{dice.randrange(10**6):06d}@example.com", {"first_name": f"Person {number}"}


def run(place: Place, plan: Plan, *, has_mailbox: bool, tell: Tell, meter: Meter) -> Report:
    """Runs one drill in the place's database, in an account of its own.

    Raises: SendonceError when others work on the database, or a worker does not run.
    """
    slug = f"drill-{plan.seed}-{int(time.time())}"
    with transaction(place.engine) as session:
        require_quiet(
            store.moving_campaigns(session),
            store.live_worker_count(session, within_s=2 * place.settings.dead_after_s),
        )
        account_id, cast = stage.make_account(session, slug, name="Drill", roles=ROLES)
        list_id = store.insert_people(
            session, account_id, list_name="Drill", people=people(plan.recipients, seed=plan.seed)
        )
    tell(f"Account {slug}, {plan.recipients:,} recipients, seed {plan.seed}.")
    with Children(place.folder) as children:
        environ, mailbox = dict(place.environ), None
        if has_mailbox:
            mailbox = open_post_office(children, environ=environ, dot_delay_ms=plan.dot_delay_ms)
            environ["SENDONCE_SMTP_URL"] = mailbox.url
        crew = Crew(children, environ, place.engine, dead_after_s=place.settings.dead_after_s)
        crew.start()
        crew.wait_until_alive()
        with transaction(place.engine) as session:
            campaign_id = stage.approved_campaign(
                session, account_id, draft=replace(stage.PAPER, list_id=list_id), people=cast
            )
        began = time.monotonic()
        send(crew, plan, account_id=account_id, campaign_id=campaign_id, tell=tell, meter=meter)
        seconds = time.monotonic() - began
        wait_for_calm(place.engine, account_id, campaign_id)
        children.end(crew.workers)
        limit = crew.kills * place.settings.connections
        verdict = verdict_of(
            place.engine, account_id, campaign_id, expected=plan.recipients, mailbox=mailbox, in_doubt_limit=limit
        )
    return Report(
        account=slug,
        campaign_id=campaign_id,
        seed=plan.seed,
        kills=crew.kills,
        freezes=crew.freezes,
        connections=place.settings.connections,
        in_doubt_limit=limit,
        seconds=round(seconds, 2),
        messages_per_s=round(plan.recipients / seconds, 1),
        verdict=verdict,
    )


def send(crew: Crew, plan: Plan, *, account_id: int, campaign_id: int, tell: Tell, meter: Meter) -> None:
    """Watches the campaign to its end and hits the workers at the plan's moments; returns too when the time is up."""
    todo = deque(moments(plan))
    frozen_until: dict[int, float] = {}
    deadline = time.monotonic() + plan.limit_s
    while time.monotonic() < deadline:
        with transaction(crew.engine) as session:
            campaign = campaigns.show(session, account_id, campaign_id)
        through = campaign.recipient_count - campaign.counts["queued"] - campaign.counts["sending"]
        meter(through, plan.recipients)
        _thaw(crew, frozen_until, tell)
        if campaign.status == "sent" and not crew.frozen:
            if todo:
                tell(f"All were sent before {len(todo)} of the planned moments came.")
            return
        crew.check()
        while todo and through >= todo[0].share * plan.recipients and _hit(crew, todo[0], frozen_until, tell):
            todo.popleft()
        time.sleep(LOOK_EVERY_S)


def wait_for_calm(engine: Engine, account_id: int, campaign_id: int) -> None:
    """Returns when no count has changed for a while."""
    counts, since = None, time.monotonic()
    while time.monotonic() < since + CALM_S:
        with transaction(engine) as session:
            now_counts = campaigns.show(session, account_id, campaign_id).counts
        if now_counts != counts:
            counts, since = now_counts, time.monotonic()
        time.sleep(5 * LOOK_EVERY_S)


def verdict_of(
    engine: Engine, account_id: int, campaign_id: int, *, expected: int, mailbox: PostOffice | None, in_doubt_limit: int
) -> Verdict:
    """Reads ledger and mailbox, each by itself, and gives what they say together."""
    with transaction(engine) as session:
        rows = store.rows_of_campaign(session, account_id, campaign_id)
        counts = campaigns.show(session, account_id, campaign_id).counts
    tally = mailbox.tally() if mailbox else None
    return judge(rows, expected=expected, counts=counts, tally=tally, in_doubt_limit=in_doubt_limit)


def _hit(crew: Crew, moment: Moment, frozen_until: dict[int, float], tell: Tell) -> bool:
    """Gives False when it is not possible now: somebody must be left awake to declare the frozen one dead."""
    if moment.action == "freeze" and (crew.frozen or not crew.is_working(moment.place)):
        return False
    time.sleep(moment.wait_s)
    # A frozen worker is left to wake up: that is what its freezing is for.
    place = 1 - moment.place if moment.action == "kill" and moment.place in crew.frozen else moment.place
    name = crew.workers[place].name
    if moment.action == "kill":
        crew.kill(place)
        tell(f"Killed {name} (SIGKILL); {crew.workers[place].name} takes its place.")
    else:
        crew.freeze(place)
        frozen_until[moment.place] = time.monotonic() + FREEZE_LIMIT * crew.dead_after_s
        tell(f"Froze {name} (SIGSTOP).")
    return True


def _thaw(crew: Crew, frozen_until: dict[int, float], tell: Tell) -> None:
    for place in list(crew.frozen):
        is_taken_over = crew.is_taken_over(place)
        if not is_taken_over and time.monotonic() < frozen_until[place]:
            continue
        crew.thaw(place)
        state = "declared dead, its rows taken over" if is_taken_over else "nobody took its rows over in time"
        tell(f"Thawed {crew.workers[place].name} (SIGCONT): {state}.")
