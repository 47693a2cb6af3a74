"""An installation whose messages go out by one configured provider of any kind, against a server of the test's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from house import House, house
from peers import dialects
from peers.sink import Sink
from peers.vendor import SECRET, Dialect, Vendor
from sqlalchemy import Engine, text

from console.db import transaction
from console.providers import service
from console.providers.service import Draft
from console.sends import message_types
from console.sends.intake import Rendered, Request, accept
from console.sends.type_store import TypeRow

NOTE = TypeRow(
    name="note", lane="normal", template=None, sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern=None, in_doubt_policy="hold", attempt_cap=6, age_cap_s=3600,
)  # fmt: skip
DIALECTS: dict[str, type[Dialect]] = {
    "resend": dialects.Resend,
    "brevo": dialects.Brevo,
    "postmark": dialects.Postmark,
    "mailjet": dialects.Mailjet,
    "ses": dialects.Ses,
}
# What each kind wants to know beside its secret and its address.
SETTINGS = {"mailjet": {"api_key": "public"}, "ses": {"region": "eu-west-1", "access_key": SECRET}}


def use(
    at: House, kind: str, *, name: str = "main", secret: str | None = SECRET, settings: dict[str, str] | None = None
) -> None:
    """Configures a provider."""
    draft = Draft(name=name, kind=kind, secret=secret, settings={**SETTINGS.get(kind, {}), **(settings or {})})
    with transaction(at.engine) as session:
        service.add(session, at.stage.account_id, user_id=None, draft=draft, secret_key=at.settings().secret_key)


def route(at: House, *names: str) -> None:
    """Lets all messages of the account go by these providers."""
    with transaction(at.engine) as session:
        service.set_route(session, at.stage.account_id, user_id=None, name="default", providers=list(names))


@contextmanager
def vendor_house(
    engine: Engine,
    database_url: str,
    folder: Path,
    *,
    kind: str = "resend",
    policy: str = "hold",
    attempt_cap: int = 6,
    secret: str = SECRET,
) -> Iterator[tuple[House, Any]]:
    """An account whose messages of the type `note` go by the provider `main`, and who takes them.

    Gives: the installation, and the vendor; for `file` the folder, for `smtp` the server, which is the installation's.
    """
    with Sink() as own:
        at = house(engine, database_url, folder, emails=["c@example.com"], smtp_url=own.url)
        with transaction(engine) as session:
            kept = replace(NOTE, in_doubt_policy=policy, attempt_cap=attempt_cap)
            message_types.put_type(session, at.stage.account_id, kept)
        if kind == "smtp":
            yield at, own
            return
        if kind == "file":
            use(at, kind, secret=None)
            route(at, "main")
            yield at, folder / "data" / "outbox"
        else:
            with Vendor(DIALECTS[kind]()) as vendor:
                use(at, kind, secret=secret, settings={"base_url": vendor.url, "timeout_s": "1"})
                route(at, "main")
                yield at, vendor
        assert not own.datas


def ask(at: House, count: int = 1) -> None:
    """Hands in that many messages, to u0@example.com and so on."""
    with transaction(at.engine) as session:
        for number in range(count):
            asked = Request(
                to=f"u{number}@example.com",
                message_type="note",
                rendered=Rendered(subject="Hello", html="<p>Hello</p>"),
                dedupe_key=f"note:{number}",
            )
            accept(session, at.stage.account_id, asked)


def is_through(at: House) -> bool:
    return not any(status in ("queued", "sending") for status in at.statuses().values())


def attempts(at: House) -> list[tuple]:
    """Of each attempt, in order: provider, outcome, phase, code."""
    return [
        tuple(row) for row in _rows(at, "provider, outcome, phase, code FROM attempts ORDER BY send_id, attempt_no")
    ]


def look_ups(at: House) -> list[tuple]:
    """Of each look-up, in order: provider, what was asked, answer, words, the provider's id."""
    return [tuple(row) for row in _rows(at, "provider, asked, answer, words, provider_id FROM look_ups ORDER BY id")]


def doubts(at: House) -> list[Any]:
    """What is being settled."""
    return _rows(at, "*, due_at IS NULL AS is_held FROM doubts ORDER BY send_id")


def pass_time(at: House, seconds: float) -> None:
    """Lets so much time have passed since all that was done about messages in doubt."""
    values = {"seconds": seconds}
    with transaction(at.engine) as session:
        session.execute(
            text(
                "UPDATE attempts SET handed_over_at = handed_over_at - make_interval(secs => :seconds),"
                " ended_at = ended_at - make_interval(secs => :seconds)"
            ),
            values,
        )
        session.execute(
            text(
                "UPDATE sends SET due_at = due_at - make_interval(secs => :seconds),"
                " bound_until = bound_until - make_interval(secs => :seconds)"
            ),
            values,
        )
        session.execute(
            text(
                "UPDATE doubts SET first_at = first_at - make_interval(secs => :seconds),"
                " due_at = due_at - make_interval(secs => :seconds)"
            ),
            values,
        )


def pass_time_until(at: House, seconds: float, is_so: Callable[[], bool]) -> None:
    """Lets so much time pass until something is so: more than once when a step that was being taken missed it."""
    for _ in range(15):
        pass_time(at, seconds)
        with suppress(TimeoutError):
            return at.wait_until(is_so, timeout_s=3)
    raise TimeoutError(f"not so; {at.statuses()}")


def _rows(at: House, columns: str) -> list[Any]:
    with transaction(at.engine) as session:
        return list(session.execute(text(f"SELECT {columns}")).all())
