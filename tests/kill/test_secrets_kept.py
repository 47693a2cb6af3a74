"""No secret is told: not by pages, the API, commands, logs or errors, and the database holds none in the clear."""

import base64
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import click
import httpx
import make
import post
import pytest
import visit
from click.testing import CliRunner
from house import House, house
from peers import dialects
from peers.sink import Sink
from peers.sink_script import Offer, Rule
from peers.vendor import SECRET as PROVIDER_KEY
from peers.vendor import Asked, Said, Vendor
from sqlalchemy import Engine, text
from stage import SETTINGS, Stage
from werkzeug.routing import Rule as Route

from console.cli import cli
from console.db import transaction
from console.demo.children import Child, sendonce
from console.errors import SendonceError

pytestmark = pytest.mark.kill

LISTS = {"list", "show", "check", "sends", "campaign check"}
KNOWN = {
    "name": "main", "email": "rita@example.com", "campaign_id": "1", "endpoint_name": "shop", "version": None,
}  # fmt: skip


def _planted(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex}"


@dataclass
class Secrets:
    """What must not be told, by what it is, and whatever was said, by who said it."""

    texts: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Fails with every secret that anybody told, as it is or written otherwise."""
        told = []
        for what, secret in self.texts.items():
            raw = secret.encode()
            forms = {secret, base64.b64encode(raw).decode().rstrip("="), raw.hex(), quote(secret, safe="")}
            told += [(what, who) for who, words in self.said.items() if any(form in words for form in forms)]
        assert told == []


@dataclass
class Scene:
    """An installation with a secret at each place that takes one."""

    at: House
    office: visit.Office
    secrets: Secrets
    token: str
    key: str = ""

    def command(self, *arguments: str, stdin: str | None = None, is_kept: bool = True, **changes: str) -> str:
        """Runs a command as the installation is set; `changes` to its environment. Keeps what it said."""
        environ = self.at.environ | changes
        done = CliRunner().invoke(cli, list(arguments), env=environ, input=stdin)
        # An error of ours is printed as one sentence.
        assert done.exception is None or isinstance(done.exception, SystemExit | SendonceError), done.exception
        if is_kept:
            self.secrets.said[f"sendonce {' '.join(arguments)} {sorted(changes)}"] = f"{done.output}{done.exception}"
        return done.output


class Telltale(dialects.Resend):
    """Says again which key it was given."""

    given = ""

    def is_known(self, asked: Asked) -> bool:
        self.given = asked.headers.get("authorization", "")
        return super().is_known(asked)

    def stranger(self) -> Said:
        return Said(401, {"statusCode": 401, "name": "validation_error", "message": f"{self.given} is invalid"})


@pytest.fixture
def scene(engine: Engine, database_url: str, tmp_path: Path) -> Iterator[Scene]:
    with Sink(offer=Offer(users={"ann": _planted("smtp")})) as sink, Vendor(Telltale()) as vendor:
        password = sink.offer.users["ann"]
        # The worst of servers: says again what it was told, in the clear and as it came.
        echo = f"535 5.7.8 no such password: {password} {base64.b64encode(password.encode()).decode()}"
        # Twice: once for each mechanism that the client tries.
        sink.script.append(Rule(stage="AUTH", times=2, reply=echo))
        office = visit.office(engine)
        secrets = Secrets({"smtp password": password, "secret key": _planted("key"), "database": _planted("database")})
        parts = urlsplit(database_url)
        # The embedded server's URL names no host: its socket stands in the query.
        where = parts.netloc.rpartition("@")[2]
        url = parts._replace(netloc=f"postgres:{secrets.texts['database']}@{where}").geturl()
        stage = Stage(engine, office.account_id, office.users["mia"], office.users["abe"], office.list_id, SETTINGS)
        at = house(
            engine, url, tmp_path, smtp_url=sink.url, stage=stage, LOG_FORMAT="json",
            SECRET_KEY=secrets.texts["secret key"],
        )  # fmt: skip
        one = Scene(at, office, secrets, token="")
        _plant(one, vendor.url, tmp_path)
        yield one


def _plant(scene: Scene, vendor_url: str, folder: Path) -> None:
    """Puts a secret wherever there is a place for one. What shows one once is not kept."""
    acme = ("--account", "acme")
    texts = scene.secrets.texts
    texts |= {"password": make.PASSWORD, "wrong provider key": _planted("provider"), "relay": _planted("relay")}
    texts |= {"provider key": PROVIDER_KEY, "reports": _planted("reports")}
    texts["webhook"] = "whsec_" + base64.b64encode(uuid.uuid4().bytes + uuid.uuid4().bytes).decode()
    (folder / "mail.html").write_text("<p>Order {{ order_id }}</p>")
    scene.command("template", "add", "main", *acme, "--subject", "Order", "--html", str(folder / "mail.html"))
    scene.command("message-type", "set", "main", *acme, "--lane", "urgent", "--template", "main")
    provider = ("provider", "add", "--secret-stdin", *acme, "--kind")
    setting = ("--setting", f"base_url={vendor_url}")
    scene.command(*provider, "resend", "main", *setting, stdin=texts["provider key"] + "\n")
    scene.command(*provider, "resend", "wrong", *setting, stdin=texts["wrong provider key"] + "\n")
    relay = ("--setting", "host=127.0.0.1", "--setting", "user=ann", "--setting", "port=9")
    scene.command(*provider, "smtp", "relay", *relay, stdin=texts["relay"] + "\n")
    report_url = scene.command("provider", "reports", "main", *acme, is_kept=False)
    texts["report address"] = report_url.strip().rpartition("/")[2]
    scene.command("provider", "reports", "main", *acme, "--secret-stdin", stdin=texts["reports"] + "\n")
    wanted = ("--scheme", "standard_webhooks", "--secret-stdin")
    url = scene.command(
        "inbox", "endpoint", "add", "shop", *acme, *wanted, stdin=texts["webhook"] + "\n", is_kept=False
    )
    scene.token = texts["inbox address"] = url.split()[0].rpartition("/")[2]
    scopes = ("--scope", "send", "--scope", "read", "--scope", "suppress")
    scene.key = scene.command("api-key", "add", *acme, *scopes, is_kept=False).split()[0]
    texts["api key"] = scene.key.rpartition("_")[2]
    # All of them are there, or the test holds nothing.
    assert len(texts) == 12
    assert all(len(each) >= 15 for each in texts.values()), texts


def test_secrets_are_told_by_nobody_and_kept_by_no_table(scene: Scene) -> None:
    """Pages as admin, lists of the command line, errors of the API, logs of serve and a worker, all rows."""
    at = scene.at
    with at.children() as children:
        serve = children.start("serve", sendonce("serve", "--port", "0"), environ=at.environ, has_output=True)
        url = serve.first_line(within_s=60).split()[4]
        worker = at.worker(children)
        _call(scene, url)
        # The server has told the password, and has taken a message since.
        at.wait_until(lambda: "sent" in at.statuses().values(), timeout_s=60)
        _read_pages(scene, url)
        _run_commands(scene)
        children.end([serve, worker])
        _keep_logs(scene, serve, worker)
    _keep_rows(scene)
    # Both kinds of server have told what they were told.
    said = scene.secrets.said
    assert "no such password: *** ***" in said["table provider_states"]
    assert "*** is invalid" in said["sendonce provider check wrong --account acme []"]
    scene.secrets.check()


def _call(scene: Scene, url: str) -> None:
    """The API and the inbox, with what is right and what is wrong."""
    right = {"Authorization": f"Bearer {scene.key}"}
    message = {"to": "rita@example.com", "message_type": "main", "params": {"order_id": 1}, "dedupe_key": "a"}
    asked: list[tuple[str, dict[str, str], Any]] = [
        ("/api/v1/emails", right, message),
        ("/api/v1/emails", right, message | {"params": {"order_id": 2}}),
        ("/api/v1/emails", right, {"to": 1}),
        ("/api/v1/emails", {"Authorization": f"Bearer {scene.key}x"}, message),
        ("/api/v1/emails", {"Authorization": f"Basic {scene.key}"}, message),
        ("/api/v1/nothing", right, message),
        (f"/inbox/shop/{scene.token}", {}, post.ORDER),
        (f"/inbox/shop/{scene.token}/x", {}, post.ORDER),
        (f"/inbox/other/{scene.token}", {}, post.ORDER),
        (f"/inbox/reports/acme/{scene.secrets.texts['report address']}", {}, post.ORDER),
    ]
    statuses = []
    for number, (path, headers, body) in enumerate(asked):
        answer = httpx.post(url + path, headers=headers, json=body, timeout=30)
        statuses.append(answer.status_code)
        scene.secrets.said[f"POST {number}"] = answer.text + str(answer.headers)
    assert statuses[:5] == [202, 409, 400, 401, 401]
    for path in ("/api/v1/emails", "/api/v1/emails/1", "/api/v1/suppressions", "/api/v1/openapi.json"):
        scene.secrets.said[f"GET {path}"] = httpx.get(url + path, headers=right, timeout=30).text


def _read_pages(scene: Scene, url: str) -> None:
    """Every page of the URL map as an admin, with the numbers of what there is; a sign-in that fails first."""
    names = {"type_name": "main", "template_name": "main"}
    campaign_id = scene.office.campaign("submitted")
    with httpx.Client(base_url=url, timeout=30, follow_redirects=True) as client:
        for password in (make.PASSWORD + "x", make.PASSWORD):
            found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', client.get("/accounts/sign-in").text)
            assert found
            fields = {"csrf_token": found[1], "account": "acme", "email": "ada@example.com", "password": password}
            page = client.post("/accounts/sign-in", data=fields)
            scene.secrets.said[f"POST sign-in {len(password)}"] = page.text
        assert "Sign out" in page.text
        pages = []
        for route in scene.office.app.url_map.iter_rules():
            if "GET" not in (route.methods or ()) or {"token", "filename"} & route.arguments:
                continue
            path = _path(route, campaign_id=campaign_id, **names)
            answer = client.get(path)
            assert answer.status_code < 500, path
            pages.append(answer.status_code)
            scene.secrets.said[f"GET {path}"] = answer.text
    assert pages.count(200) > 35


def _path(route: Route, **known: Any) -> str:
    built = route.build({name: known.get(name, 1) for name in route.arguments}, append_unknown=False)
    assert built
    return built[1]


def _run_commands(scene: Scene) -> None:
    """Every command that lists or shows, as text and as JSON; and settings that are wrong around their secrets."""
    ran = []
    for words, command in _commands(cli, ()):
        if words[-1] not in LISTS:
            continue
        given = [*words]
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                given.append(str(KNOWN[parameter.name or ""]))
            elif parameter.name == "slug":
                given += ["--account", "acme"]
            elif parameter.required:
                given += [parameter.opts[0], str(KNOWN[parameter.name or ""])]
        ran.append(words)
        scene.command(*given)
        if any(parameter.name == "as_json" for parameter in command.params):
            scene.command(*given, "--json")
    assert len(ran) >= 12
    for name in ("wrong", "relay", "smtp"):
        scene.command("provider", "check", name, "--account", "acme")
    url, smtp = scene.at.environ["SENDONCE_DATABASE_URL"], scene.at.environ["SENDONCE_SMTP_URL"]
    scene.command("db", "check", SENDONCE_DATABASE_URL=re.sub(r":\d+/", ":1/", url))
    scene.command("db", "check", SENDONCE_DATABASE_URL=re.sub(r":\d+/", ":x/", url))
    scene.command("db", "check", SENDONCE_SMTP_URL=re.sub(r":\d+$", ":x", smtp))
    scene.command("provider", "check", "smtp", "--account", "acme", SENDONCE_SMTP_URL=f"{smtp}?tls=perhaps")
    scene.command("provider", "check", "main", "--account", "acme", SENDONCE_SECRET_KEY="another-key-of-some-length")


def _commands(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, (*words, name))
        else:
            yield (*words, name), command


def _keep_logs(scene: Scene, *children: Child) -> None:
    for child in children:
        scene.secrets.said[f"log of {child.name}"] = child.log.read_text()
    said = scene.secrets.said["log of serve"] + scene.secrets.said["log of worker 2"]
    # Also that the trouble was told at all.
    assert any(json.loads(line).get("event") == "provider.trouble" for line in said.splitlines() if line[:1] == "{")


def _keep_rows(scene: Scene) -> None:
    """Every row of every table as text, as a dump has them; bytes in hexadecimal."""
    with transaction(scene.at.engine) as session:
        tables = session.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
        for table in tables:
            rows = session.execute(text(f'SELECT t::text FROM "{table}" t')).scalars().all()
            scene.secrets.said[f"table {table}"] = "\n".join(rows)
    assert len(tables) > 20
