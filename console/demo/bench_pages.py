"""How fast the console answers while its process sends at full speed, and what it costs when it has nothing to do."""

import re
import threading
import time
from html import unescape
from http.client import HTTPConnection
from statistics import quantiles
from typing import Any
from urllib.parse import quote, urlencode

import psutil

from console.campaigns import store as campaigns
from console.db import transaction
from console.demo import bench_runs, store
from console.demo.bench_runs import Prepared
from console.demo.children import Child, Children, sendonce
from console.demo.place import Place
from console.demo.postfix import Postfix
from console.errors import SendonceError

READERS = 2
# A person who clicks; the progress of an open page asks again every 2 s.
PAUSE_S = 0.1
IDLE_S = 30.0
SETTLE_S = 8.0


class Reader:
    """A browser without scripts: keeps its connection and its cookie, and measures."""

    def __init__(self, port: int):
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)
        self._cookies: dict[str, str] = {}
        self.took_s: dict[str, list[float]] = {}

    def sign_in(self, prepared: Prepared) -> None:
        """Raises: SendonceError when the console does not let us in."""
        page = self._ask("GET", "/accounts/sign-in")[1]
        token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
        person = prepared.people["admin"]
        fields = {
            "csrf_token": unescape(token[1]) if token else "",
            "account": prepared.slug,
            "email": person.email,
            "password": person.password,
        }
        status, page = self._ask("POST", "/accounts/sign-in", urlencode(fields))
        if status not in (302, 303):
            raise SendonceError(f"The console did not let the bench in (status {status}).")

    def read(self, name: str, path: str) -> None:
        began = time.perf_counter()
        status, _ = self._ask("GET", path)
        self.took_s.setdefault(name, []).append(time.perf_counter() - began)
        if status != 200:
            raise SendonceError(f"The console answered {path} with status {status}.")

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, path, body=body, headers=headers)
        answer = self._connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self._cookies[name] = value
        return answer.status, text


def pages(place: Place, postfix: Postfix, *, recipients: int) -> dict[str, Any]:
    """Measures the pages that people look at while a campaign runs at full speed in the same `serve` process."""
    prepared = bench_runs.prepare(place, recipients=recipients)
    with Children(place.folder) as children:
        _, port = postfix.start_sink(children)
        environ = place.environ | {"SENDONCE_SMTP_URL": f"smtp://127.0.0.1:{port}"}
        _, web_port = start_console(children, environ)
        readers = [Reader(web_port) for _ in range(READERS)]
        for reader in readers:
            reader.sign_in(prepared)
        _read_until_sent(place, prepared, readers)
    took_s = [each for reader in readers for name in reader.took_s for each in reader.took_s[name]]
    return {
        "recipients": recipients,
        "messages_per_s": round(bench_runs.run_of(place, prepared).messages_per_s, 1),
        "pages": len(took_s),
        "p50_ms": percentile_ms(took_s, 50),
        "p95_ms": percentile_ms(took_s, 95),
        "by_page_p95_ms": {
            name: percentile_ms([each for reader in readers for each in reader.took_s[name]], 95)
            for name in readers[0].took_s
        },
    }


def idle(place: Place) -> dict[str, Any]:
    """Measures `serve` with nothing to do: share of one core, and memory."""
    with Children(place.folder) as children:
        console, _ = start_console(children, place.environ)
        # Start-up's work is not idling.
        time.sleep(SETTLE_S)
        process = psutil.Process(console.pid)
        before, began = process.cpu_times(), time.monotonic()
        time.sleep(IDLE_S)
        after, seconds = process.cpu_times(), time.monotonic() - began
        busy_s = after.user + after.system - before.user - before.system
        return {
            "seconds": round(seconds, 1),
            "core_percent": round(100 * busy_s / seconds, 2),
            "rss_mb": round(process.memory_info().rss / 1e6, 1),
        }


def start_console(children: Children, environ: dict[str, str], *options: str) -> tuple[Child, int]:
    """Starts `sendonce serve`, with ticks and sending unless `options` say otherwise, on a free port; gives both.

    Raises: SendonceError when it does not start.
    """
    child = children.start("serve", sendonce("serve", "--port", "0", *options), environ=environ, has_output=True)
    line = child.first_line()
    found = re.search(r"http://[^ ]*:(\d+)", line)
    if found is None:
        raise SendonceError(f"The console did not say where it is, but {line!r}.")
    return child, int(found[1])


def _read_until_sent(place: Place, prepared: Prepared, readers: list[Reader]) -> None:
    is_over = threading.Event()
    troubles: list[BaseException] = []
    with transaction(place.engine) as session:
        send_id = store.any_send(session, prepared.account_id, prepared.campaign_id)
        campaign = campaigns.show(session, prepared.account_id, prepared.campaign_id)
    person = quote(f"person{prepared.recipients // 2}@example.com")
    paths = {
        "today": "/",
        "campaigns": "/campaigns/",
        "campaign": f"/campaigns/{campaign.id}",
        "progress": f"/campaigns/{campaign.id}/progress",
        "search": f"/sends/?recipient={person}",
        "rows": f"/sends/campaign/{campaign.id}",
        "sent rows": f"/sends/campaign/{campaign.id}?status=sent",
        "send": f"/sends/{send_id}",
    }

    def read(reader: Reader) -> None:
        try:
            while not is_over.is_set():
                for name, path in paths.items():
                    reader.read(name, path)
                    if is_over.wait(PAUSE_S):
                        return
        except (OSError, SendonceError) as error:
            troubles.append(error)

    threads = [threading.Thread(target=read, args=(reader,), daemon=True) for reader in readers]
    for thread in threads:
        thread.start()
    bench_runs.wait_until_sent(place, prepared)
    is_over.set()
    for thread in threads:
        thread.join(30)
    if troubles:
        raise SendonceError(f"A page could not be read: {troubles[0]}")


def percentile_ms(took_s: list[float], percent: int) -> float:
    """Gives the time that so many percent stay within, in milliseconds."""
    if len(took_s) < 2:
        return round(1000 * sum(took_s), 1)
    return round(1000 * quantiles(took_s, n=100, method="inclusive")[percent - 1], 1)
