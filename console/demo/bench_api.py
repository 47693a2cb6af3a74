"""How fast messages are taken by the HTTP API: many clients at once, a fifth of their calls repeats of earlier ones."""

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any

import psutil

from console.accounts import keys
from console.db import transaction
from console.demo import stage, store
from console.demo.bench_pages import percentile_ms, start_console
from console.demo.children import Children
from console.demo.place import Place
from console.errors import SendonceError
from console.sends import message_types
from console.sends.type_store import TypeRow

CLIENTS = 16
REPEAT_EVERY = 5
# Its memory is compared from here on: by then every thread has served, and what is kept is kept.
WARM_SHARE = 0.1
MESSAGE_TYPE = TypeRow(
    name="receipt", lane="normal", template="receipt", sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern="receipt:{order_id}", in_doubt_policy="hold", attempt_cap=12, age_cap_s=345_600,
)  # fmt: skip


@dataclass
class Client:
    """One caller, with a connection that it keeps. `neighbour` is the one whose messages it repeats."""

    name: str
    neighbour: str
    port: int
    key: str
    statuses: Counter[int] = field(default_factory=Counter)
    took_s: list[float] = field(default_factory=list)

    def call(self, call_count: int) -> None:
        """Hands messages in, one after the other; each fifth is one that its neighbour hands in at about that time."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        for place in range(call_count):
            owner, number = (self.neighbour, place - 1) if _is_repeat(place) else (self.name, place)
            body = {
                "to": f"person-{owner}@example.com",
                "message_type": MESSAGE_TYPE.name,
                "params": {"order_id": f"{owner}-{number}", "first_name": "Rita"},
            }
            began = time.perf_counter()
            connection.request("POST", "/api/v1/emails", json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            self.took_s.append(time.perf_counter() - began)
            self.statuses[answer.status] += 1


def measure(place: Place, *, call_count: int) -> dict[str, Any]:
    """Measures the calls of CLIENTS clients, each of which waits for its answers, against a console that only serves.

    Raises: SendonceError when a client can't go on.
    """
    with transaction(place.engine) as session:
        account_id, _ = stage.make_account(session, "bench-api", name="Bench", roles=("admin",))
        key = keys.add_key(session, account_id, scopes=["send"], calls_per_minute=keys.MOST_CALLS_PER_MINUTE).text
        message_types.save_template(
            session, account_id, name="receipt", subject="Order {{ order_id }}", html="<p>Hello {{ first_name }}</p>"
        )
        message_types.put_type(session, account_id, MESSAGE_TYPE)
    call_counts = {"warm": _whole_rounds(call_count * WARM_SHARE), "bench": _whole_rounds(call_count)}
    with Children(place.folder) as children:
        console, port = start_console(children, place.environ, "--no-scheduler")
        process = psutil.Process(console.pid)
        _run(_clients("warm", port=port, key=key), call_count=call_counts["warm"])
        warm_bytes = process.memory_info().rss
        clients = _clients("bench", port=port, key=key)
        began = time.monotonic()
        _run(clients, call_count=call_counts["bench"])
        seconds = time.monotonic() - began
        rss_bytes = process.memory_info().rss
    with transaction(place.engine) as session:
        rows = store.count_sends(session, account_id)
    asked_for = sum(CLIENTS * count * (REPEAT_EVERY - 1) // REPEAT_EVERY for count in call_counts.values())
    return _figures(clients, seconds=seconds) | {
        "rss_mb": round(rss_bytes / 1e6, 1),
        "rss_grown_mb": round((rss_bytes - warm_bytes) / 1e6, 1),
        "duplicates": rows - asked_for,
    }


def _is_repeat(place: int) -> bool:
    return place % REPEAT_EVERY == REPEAT_EVERY - 1


def _whole_rounds(call_count: float) -> int:
    """Gives how many calls each client makes, so that exactly one in REPEAT_EVERY is a repeat."""
    return REPEAT_EVERY * max(1, round(call_count / CLIENTS / REPEAT_EVERY))


def _clients(word: str, *, port: int, key: str) -> list[Client]:
    return [Client(f"{word}-{number}", f"{word}-{(number + 1) % CLIENTS}", port, key) for number in range(CLIENTS)]


def _run(clients: list[Client], *, call_count: int) -> None:
    troubles: list[BaseException] = []

    def call(client: Client) -> None:
        try:
            client.call(call_count)
        except (OSError, HTTPException, ValueError) as error:
            troubles.append(error)

    threads = [threading.Thread(target=call, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise SendonceError(f"A client could not go on: {troubles[0]!r}.")


def _figures(clients: list[Client], *, seconds: float) -> dict[str, Any]:
    took_s = [each for client in clients for each in client.took_s]
    statuses = sum((client.statuses for client in clients), Counter[int]())
    return {
        "clients": CLIENTS,
        "calls": len(took_s),
        "calls_per_s": round(len(took_s) / seconds, 1),
        "p50_ms": percentile_ms(took_s, 50),
        "p95_ms": percentile_ms(took_s, 95),
        "p99_ms": percentile_ms(took_s, 99),
        "new": statuses[202],
        "repeats": statuses[200],
        "errors": len(took_s) - statuses[202] - statuses[200],
    }
