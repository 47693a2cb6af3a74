"""The demo: a campaign with everything around it, and workers that are killed and frozen while it is being sent.

In a folder and an embedded PostgreSQL of its own (place.py), emptied at every start: it can be run again and again and
never touches what somebody keeps in the data directory.
"""

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from console.audience import service as audience
from console.audience.csv_import import import_csv
from console.audience.store import list_by_name
from console.campaigns import store as campaigns
from console.campaigns.service import Draft
from console.db import transaction
from console.demo import drill, stage, store
from console.demo.children import Child, Children, sendonce
from console.demo.crew import Crew
from console.demo.place import Place, own_place
from console.demo.post_office import PostOffice, open_post_office
from console.demo.sample_file import write_sample
from console.demo.show import Show
from console.demo.stage import SignIn
from console.demo.verdict import UNSENT, Verdict

SLUG = "demo"
LIST = "Autumn news"
CONNECTIONS = 8
WORKERS = 2
# Long enough to watch: the mailbox answers each message so slowly that sending takes about this long.
SENDING_S = 12.0
LONGEST_DOT_DELAY_MS = 400.0
KILL_AT, FREEZE_AT, OPT_OUT_AT = 0.25, 0.5, 0.1
LIMIT_S = 300.0
USUAL_PORT = 8080
OVERRIDES = drill.PACE | {
    "SENDONCE_CONNECTIONS": str(CONNECTIONS),
    "SENDONCE_BATCH_SIZE": "20",
    "SENDONCE_MAX_RATE": "",
    "SENDONCE_LOG_FORMAT": "text",
    "SENDONCE_SECRET_KEY": "",
}
PAPER = Draft(
    name="Autumn collection",
    list_id=0,
    subject='{{ first_name | default("Hello") }}, autumn is here',
    sender="Acme Outdoor <news@example.com>",
    html=(
        '<html><body style="font:15px/1.5 Arial,sans-serif">\n<h1>Hello {{ first_name | default("there") }}!</h1>\n'
        "<p>Boots for wet days, coats that last, scarves in seven colours: the new collection is in, also at our shop"
        " in {{ city }}.</p>\n"
        '<p><a href="{{ unsubscribe_url }}">Leave this list</a></p>\n</body></html>\n'
    ),
    text=(
        'Hello {{ first_name | default("there") }}!\n\nThe new collection is in, also at our shop in {{ city }}.\n\n'
        "Leave this list: {{ unsubscribe_url }}\n"
    ),
)


@dataclass(frozen=True)
class Scene:
    """All that is set up before the first message."""

    account_id: int
    people: dict[str, SignIn]
    expected: int


def run(show: Show, *, recipients: int, environ: Mapping[str, str], stays_open: bool) -> Verdict:
    """Plays the demo; with `stays_open` it returns only when it is interrupted.

    Raises: SendonceError when something does not start.
    """
    show.head(f"Sendonce demo: {recipients:,} messages, two workers, one kill, one freeze. Each message once?")
    show.say("Starting a PostgreSQL of the demo's own (the first time takes some seconds) ...")
    port = _free_port()
    overrides = OVERRIDES | {"SENDONCE_BASE_URL": f"http://127.0.0.1:{port}"}
    bare = {name: value for name, value in environ.items() if not name.startswith("SENDONCE_")}
    kept = {name: value for name, value in environ.items() if name == "SENDONCE_DATA_DIR"}
    with (
        own_place("demo", environ=bare | kept, overrides=overrides) as place,
        Children(place.folder) as children,
    ):
        scene = _set_up(place, show, recipients=recipients)
        delay_ms = min(LONGEST_DOT_DELAY_MS, SENDING_S * WORKERS * CONNECTIONS / recipients * 1000)
        mailbox = open_post_office(children, environ=place.environ, dot_delay_ms=delay_ms)
        environ = place.environ | {"SENDONCE_SMTP_URL": mailbox.url}
        crew = Crew(children, environ, place.engine, size=WORKERS, dead_after_s=place.settings.dead_after_s)
        crew.start()
        serve = sendonce("serve", "--no-scheduler", "--host", "127.0.0.1", "--port", str(port))
        console = children.start("console", serve, environ=environ, has_output=True)
        console.first_line()
        crew.wait_until_alive()
        show.say(f"A mailbox on port {mailbox.port}, two workers, and the console at {place.settings.base_url}")
        campaign_id = _send(place, crew, scene, show)
        verdict = _judge(place, crew, scene, campaign_id, mailbox)
        _tell(show, verdict, crew)
        if stays_open:
            _stay_open(show, place, scene.people, campaign_id, console)
    return verdict


def _set_up(place: Place, show: Show, *, recipients: int) -> Scene:
    with transaction(place.engine) as session:
        account_id, people = stage.make_account(
            session, SLUG, name="Acme Outdoor", roles=tuple(role for _, role in stage.CAST)
        )
    sample = write_sample(place.folder / "subscribers.csv", people=recipients)
    with sample.path.open("rb") as file:
        report = import_csv(place.engine, account_id, list_name=LIST, file=file)
    show.say(
        f"Imported {sample.path.name}: {report.rows:,} rows, {report.added:,} people added,"
        f" {report.duplicates} repeated, {len(report.refused)} refused:"
    )
    show.table(
        ("line", "address", "refused because"),
        [(str(line.line), line.email, _short(line.reason)) for line in report.refused[:4]],
    )
    opted_out = _opt_out_some(place, account_id, count=recipients // 100)
    show.say(f"{opted_out} of them opted out long ago.")
    return Scene(account_id=account_id, people=people, expected=report.added)


def _opt_out_some(place: Place, account_id: int, *, count: int) -> int:
    """Opts out the first addresses of the file's list, in the order of the alphabet."""
    with transaction(place.engine) as session:
        for email in store.addresses_on_list(session, account_id, list_name=LIST, limit=count):
            audience.suppress(session, account_id, email=email, reason="asked for it by telephone")
    return count


def _send(place: Place, crew: Crew, scene: Scene, show: Show) -> int:
    """Has the campaign approved and sent, with a kill, a freeze and opt-outs on the way; gives its id."""
    author, approver = scene.people["marketer"], scene.people["approver"]
    with transaction(place.engine) as session:
        list_id = list_by_name(session, scene.account_id, LIST).id
        draft = replace(PAPER, list_id=list_id)
        campaign_id = stage.approved_campaign(session, scene.account_id, draft=draft, people=scene.people)
    show.say(f"Campaign {draft.name!r}: written by {author.name}, approved by {approver.name}.")
    acts = _Acts(place, crew, scene, show, campaign_id)
    deadline = time.monotonic() + LIMIT_S
    with show.meter("Sending") as meter:
        while time.monotonic() < deadline:
            with transaction(place.engine) as session:
                campaign = campaigns.show(session, scene.account_id, campaign_id)
            through = campaign.recipient_count - campaign.counts["queued"] - campaign.counts["sending"]
            meter(through, scene.expected)
            acts.go_on(through / scene.expected)
            if campaign.status == "sent" and not crew.frozen:
                break
            crew.check()
            time.sleep(drill.LOOK_EVERY_S)
    drill.wait_for_calm(place.engine, scene.account_id, campaign_id)
    return campaign_id


class _Acts:
    """What happens on the way, each when so much of the campaign is through."""

    def __init__(self, place: Place, crew: Crew, scene: Scene, show: Show, campaign_id: int):
        self._place, self._crew, self._scene, self._show = place, crew, scene, show
        self._campaign_id = campaign_id
        self._todo = [(OPT_OUT_AT, self._opt_out), (KILL_AT, self._kill), (FREEZE_AT, self._freeze)]
        self._frozen_at = 0.0

    def go_on(self, share: float) -> None:
        if self._todo and share >= self._todo[0][0]:
            self._todo.pop(0)[1]()
        elif self._crew.frozen:
            self._thaw()

    def _opt_out(self) -> None:
        with transaction(self._place.engine) as session:
            emails = store.queued_addresses(session, self._scene.account_id, self._campaign_id, limit=5)
            for email in emails:
                audience.suppress(session, self._scene.account_id, email=email, reason="left while it was being sent")
        self._show.say(f"{len(emails)} people opt out while their messages wait: they must get nothing.")

    def _kill(self) -> None:
        name = self._crew.workers[0].name
        self._crew.kill(0)
        self._show.say(f"SIGKILL: {name} is gone in the middle of its work; {self._crew.workers[0].name} starts.")

    def _freeze(self) -> None:
        self._crew.freeze(1)
        self._frozen_at = time.monotonic()
        self._show.say(f"SIGSTOP: {self._crew.workers[1].name} stands still, as after a long pause or a cut network.")

    def _thaw(self) -> None:
        frozen_s = time.monotonic() - self._frozen_at
        is_taken_over = self._crew.is_taken_over(1)
        if is_taken_over or frozen_s > drill.FREEZE_LIMIT * self._crew.dead_after_s:
            self._crew.thaw(1)
            state = "was declared dead, others have its rows" if is_taken_over else "kept its rows"
            self._show.say(f"SIGCONT: {self._crew.workers[1].name} wakes up after {frozen_s:.1f} s; it {state}.")


def _judge(place: Place, crew: Crew, scene: Scene, campaign_id: int, mailbox: PostOffice) -> Verdict:
    return drill.verdict_of(
        place.engine,
        scene.account_id,
        campaign_id,
        expected=scene.expected,
        mailbox=mailbox,
        in_doubt_limit=crew.kills * CONNECTIONS,
    )


def _tell(show: Show, verdict: Verdict, crew: Crew) -> None:
    states = verdict.states
    show.table(
        ("", "messages", "from"),
        [
            ("recipients", f"{verdict.recipients:,}", "ledger"),
            ("accepted", f"{verdict.accepted:,}", "mailbox"),
            ("duplicates", str(verdict.duplicates), "mailbox"),
            ("lost", str(verdict.lost), "ledger against mailbox"),
            ("sent", f"{states['sent']:,}", "ledger"),
            ("in doubt", str(states["in_doubt"]), "ledger: killed between the hand-over and the answer"),
            ("suppressed", str(states["suppressed"]), "ledger"),
            ("failed", str(states["failed"]), "ledger: a value that the text needs is missing"),
        ],
    )
    if verdict.held:
        unsent = sum(states[state] for state in UNSENT)
        show.verdict(
            f"The promise held: through {crew.kills} kill and {crew.freezes} freeze nobody got it twice, nothing was"
            f" lost, and {unsent} that were not sent and {states['in_doubt']} in doubt are named.",
            is_good=True,
        )
    else:
        show.verdict("The promise was BROKEN: " + "; ".join(verdict.broken) + ".", is_good=False)


def _stay_open(show: Show, place: Place, people: dict[str, SignIn], campaign_id: int, console: Child) -> None:
    show.head(f"The console is open at {place.settings.base_url} (account {SLUG}):")
    show.table(
        ("sign in as", "password", "who"),
        [(person.email, person.password, f"{person.name}, {person.role}") for person in people.values()],
    )
    show.say(f"This campaign: {place.settings.base_url}/campaigns/{campaign_id}   Ctrl-C ends the demo.")
    try:
        while console.is_alive():
            time.sleep(0.2)
        show.say(f"The console ended by itself.{console.log_tail()}")
    except KeyboardInterrupt:
        show.say("Ending the demo ...")


def _free_port() -> int:
    """Gives the usual port, or any free one when it is taken."""
    for port in (USUAL_PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    return USUAL_PORT


def _short(text: str, limit: int = 90) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
