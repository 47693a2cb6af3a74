"""`sendonce account`, `user`, `subscribers`, `suppress` and `campaign`, as scripts use them."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from console.accounts import service
from console.cli import main
from console.db import transaction

COUNTS = {"queued", "sending", "sent", "failed", "dead", "in_doubt", "suppressed", "cancelled"}


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def run(database_url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as the shell would: arguments apart, standard input as given."""
    monkeypatch.setenv("SENDONCE_DATABASE_URL", database_url)
    monkeypatch.setenv("SENDONCE_SECRET_KEY", "test-key-" + "k" * 32)

    def command(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["sendonce", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(code, out, err)

    return command


@pytest.fixture
def acme(run: Run) -> Run:
    """As `run`, with an account acme, an author mary and an approver pat in it."""
    assert run("account", "add", "acme").code == 0
    for email, role in (("mary@example.com", "marketer"), ("pat@example.com", "approver")):
        assert run("user", "add", email, "--account", "acme", "--role", role, stdin=b"long password\n").code == 0
    return run


@pytest.fixture
def written(acme: Run, tmp_path: Path) -> tuple[Run, str]:
    """As `acme`, with a list of two and a campaign to it; and the campaign's id."""
    people, html = tmp_path / "people.csv", tmp_path / "mail.html"
    people.write_text("email,first_name\nann@example.com,Ann\nbo@example.com,Bo\n")
    html.write_text("<p>Hello {{ first_name }}</p>")
    assert acme("subscribers", "import", str(people), "--account", "acme", "--list", "News").code == 0
    made = acme(
        "campaign", "create", "--account", "acme", "--name", "Spring", "--subject", "Hi {{ first_name }}",
        "--from", "News <news@example.com>", "--list", "News", "--html", str(html),
        "--as", "mary@example.com", "--json",
    ).json  # fmt: skip
    assert made["status"] == "draft"
    return acme, str(made["id"])


def _step(run: Run, word: str, campaign_id: str, who: str, *more: str) -> Done:
    return run("campaign", word, campaign_id, "--account", "acme", "--as", f"{who}@example.com", *more)


def test_an_account_is_made_once_and_its_slug_is_checked(run: Run) -> None:
    assert run("account", "add", "acme", "--json").json["slug"] == "acme"
    again = run("account", "add", "acme")
    assert (again.code, again.err) == (1, "Error: There is already an account 'acme'; choose another slug.\n")
    assert run("account", "add", "A b").code == 1
    assert run("account", "add").code == 2


@pytest.mark.parametrize(
    "roles",
    [("--role", "marketer", "--role", "approver"), ("--role", "marketer", "approver"), ("--role", "approver,marketer")],
)
def test_roles_may_be_repeated_or_named_in_a_row(acme: Run, roles: tuple[str, ...]) -> None:
    added = acme("user", "add", "max@example.com", "--account", "acme", *roles, "--json", stdin=b"long password\n").json
    assert added["roles"] == ["marketer", "approver"]
    assert "password" not in added


def test_a_password_comes_from_standard_input_or_is_made(acme: Run, engine: Engine) -> None:
    made = acme("user", "add", "max@example.com", "--account", "acme", "--role", "admin", "--json").json
    for email, password in (("mary@example.com", "long password"), ("max@example.com", made["password"])):
        with transaction(engine) as session:
            assert service.authenticate(session, slug="acme", email=email, password=password) is not None
            assert service.authenticate(session, slug="acme", email=email, password=password + "x") is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("max@example.com", "--account", "acme", "--role", "boss"), "boss is none of them"),
        (("max", "--account", "acme", "--role", "admin"), "must have an @-sign"),
        (("max@example.com", "--account", "nope", "--role", "admin"), "no account 'nope'"),
        (("MARY@example.com", "--account", "acme", "--role", "admin"), "already has a user"),
    ],
)
def test_a_user_that_cannot_be_is_refused_in_a_sentence(acme: Run, arguments: tuple[str, ...], words: str) -> None:
    done = acme("user", "add", *arguments, stdin=b"long password\n")
    assert done.code == 1
    assert words in done.err
    short = acme("user", "add", "max@example.com", "--account", "acme", "--role", "admin", stdin=b"short\n")
    assert (short.code, "10 to 1000 characters" in short.err) == (1, True)


def test_an_import_reports_in_json_what_it_did(acme: Run) -> None:
    content = b"email,name\nann@example.com,Ann\nnobody,x\nbo@example.com,Bo\n"
    report = acme("subscribers", "import", "-", "--account", "acme", "--list", "News", "--json", stdin=content).json
    assert {"rows": 3, "added": 2, "updated": 0, "unchanged": 0}.items() <= report.items()
    [refused] = report["refused"]
    assert (refused["line"], refused["email"], "@-sign" in refused["reason"]) == (3, "nobody", True)
    again = acme("subscribers", "import", "-", "--account", "acme", "--list", "News", stdin=content)
    assert "3 rows: 0 added, 0 updated, 2 unchanged, 1 refused." in again.out
    assert "line 3: nobody" in again.out


def test_a_file_that_is_not_there_or_no_csv_is_refused(acme: Run, tmp_path: Path) -> None:
    for path, words in (("nowhere.csv", "No such file"), (str(tmp_path), "Is a directory")):
        done = acme("subscribers", "import", path, "--account", "acme", "--list", "News")
        assert (done.code, done.out) == (1, "")
        assert (path in done.err, words in done.err, done.err.count("\n")) == (True, True, 1)
    book = tmp_path / "people.xlsx"
    book.write_bytes(b"PK\x03\x04 and so on")
    done = acme("subscribers", "import", str(book), "--account", "acme", "--list", "News")
    assert (done.code, "Excel workbook" in done.err) == (1, True)


def test_a_subscriber_is_shown_with_lists_and_what_stops_mail(written: tuple[Run, str], engine: Engine) -> None:
    run, _ = written
    run("subscribers", "import", "-", "--account", "acme", "--list", "Offers", stdin=b"email\nann@example.com\n")
    with transaction(engine) as session:
        session.execute(
            text(
                "INSERT INTO suppressions (account_id, email_lower, list_id, kind, reason)"
                " SELECT account_id, 'ann@example.com', id, 'unsubscribed', 'left' FROM lists WHERE name = 'Offers'"
            )
        )
    shown = run("subscribers", "show", "ANN@example.com", "--account", "acme", "--json").json
    assert {
        "email": "ann@example.com",
        "email_lower": "ann@example.com",
        "status": "confirmed",
        "attributes": {"first_name": "Ann"},
        "lists": ["News"],
        "unsubscribed": ["Offers"],
    }.items() <= shown.items()
    assert run("suppress", "ann@example.com", "--account", "acme", "--reason", "asked by phone").code == 0
    assert "suppressed already" in run("suppress", "ann@example.com", "--account", "acme", "--reason", "again").out
    text_form = run("subscribers", "show", "ann@example.com", "--account", "acme").out
    assert "all mail" in text_form
    assert "asked by phone" in text_form
    assert run("subscribers", "show", "eve@example.com", "--account", "acme").code == 1


def test_a_campaign_goes_its_way_by_commands_alone(written: tuple[Run, str]) -> None:
    run, campaign_id = written
    assert _step(run, "submit", campaign_id, "mary", "--json").json["status"] == "submitted"
    assert _step(run, "reject", campaign_id, "pat", "--reason", "Too loud.", "--json").json["note"] == "Too loud."
    assert _step(run, "submit", campaign_id, "mary").code == 0
    approved = _step(run, "approve", campaign_id, "pat", "--at", "2099-01-05T09:00[Europe/Lisbon]", "--json").json
    assert approved["status"] == "approved"
    assert approved["scheduled_for"] == "2099-01-05T09:00:00+00:00"
    assert approved["schedule_zone"] == "Europe/Lisbon"
    assert _step(run, "cancel", campaign_id, "mary").code == 0
    shown = run("campaign", "show", campaign_id, "--account", "acme", "--json").json
    assert (shown["id"], shown["status"]) == (int(campaign_id), "cancelled")
    assert set(shown["counts"]) >= COUNTS


def test_who_may_not_and_what_cannot_be_is_told_in_a_sentence(written: tuple[Run, str], tmp_path: Path) -> None:
    run, campaign_id = written
    broken = tmp_path / "broken.html"
    broken.write_bytes(b"<p>\n{{ first_name")
    nul = tmp_path / "nul.html"
    nul.write_bytes(b"<p>Hello</p>\n\x00")
    good = tmp_path / "good.html"
    good.write_bytes(b"<p>Hello</p>")
    latin = tmp_path / "latin.html"
    latin.write_bytes(b"<p>M\xfcller</p>")
    create = ("campaign", "create", "--account", "acme", "--name", "N", "--subject", "S", "--from", "n@example.com",
              "--list", "News", "--as", "mary@example.com", "--html")  # fmt: skip
    for done, words in [
        (_step(run, "approve", campaign_id, "mary"), "may not approve campaigns"),
        (_step(run, "pause", campaign_id, "pat"), "can't be paused: it is a draft"),
        (_step(run, "submit", campaign_id, "nobody"), "no user 'nobody@example.com'"),
        (_step(run, "submit", "999", "mary"), "no campaign 999"),
        (_step(run, "approve", campaign_id, "pat", "--at", "2027-03-28T02:30[Europe/Berlin]"), "skip"),
        (run(*create, str(broken)), "line 2"),
        (run(*create, str(latin)), "not encoded in UTF-8"),
        (run(*create, str(nul)), "The html, line 2: there is a NUL byte"),
        (run(*create, str(good), "--text", str(nul)), "The text, line 2: there is a NUL byte"),
        (run(*create, str(good), "--name", "N" * 201), "The name has 201 characters; it may have 200."),
        (run(*create, str(tmp_path / "no.html")), "No such file"),
        (run(*create, str(tmp_path)), "Is a directory"),
    ]:
        assert done.code == 1
        assert words in done.err
        assert done.err.startswith("Error: ")
    assert run("campaign", "show", "x", "--account", "acme").code == 2
    assert run("campaign", "approve", campaign_id).code == 2


def test_the_check_of_counters_fails_until_they_are_repaired(written: tuple[Run, str], engine: Engine) -> None:
    run, campaign_id = written
    assert run("campaign", "check").code == 0
    with transaction(engine) as session:
        session.execute(
            text(
                "INSERT INTO campaign_counts (account_id, campaign_id, slot, sent)"
                " SELECT account_id, id, 3, 1 FROM campaigns"
            )
        )
    differing = run("campaign", "check", "--account", "acme")
    assert (differing.code, f"Campaign {campaign_id}: 1 counted as sent, 0 rows." in differing.out) == (1, True)
    assert run("campaign", "check", "--repair").code == 0
    assert run("campaign", "check", "--json").json == {"differences": [], "is_repaired": False}


@pytest.mark.parametrize("option", ["--at=", "--at= "])
def test_an_empty_time_is_a_mistake_and_not_now(written: tuple[Run, str], option: str) -> None:
    run, campaign_id = written
    assert _step(run, "submit", campaign_id, "mary").code == 0
    done = _step(run, "approve", campaign_id, "pat", option)
    assert (done.code, "is not a time" in done.err) == (1, True)
    assert run("campaign", "show", campaign_id, "--account", "acme", "--json").json["status"] == "submitted"


def test_an_option_that_is_empty_is_not_one_that_was_left_out(written: tuple[Run, str]) -> None:
    run, _ = written
    assert run("campaign", "check", "--account", "").code == 1
    assert run("suppress", "ann@example.com", "--account", "acme", "--reason", "asked", "--as", "").code == 1
    assert run("subscribers", "show", "ann@example.com", "--account", "acme", "--json").json["suppressions"] == []


@pytest.mark.parametrize("stdin", [b"", b"\n", b"\nlong password\n"])
def test_a_password_that_should_have_come_is_not_made_up(acme: Run, stdin: bytes) -> None:
    add = ("user", "add", "max@example.com", "--account", "acme", "--role", "admin")
    done = acme(*add, "--password-stdin", stdin=stdin)
    assert (done.code, done.out) == (1, "")
    assert "no password is there" in done.err
    assert acme(*add, "--password-stdin", stdin="lång password\n".encode()).code == 0


def test_a_password_that_is_not_utf_8_is_refused(acme: Run) -> None:
    done = acme(
        "user", "add", "max@example.com", "--account", "acme", "--role", "admin", stdin=b"\xff\xfeabcdefghijk\n"
    )
    assert (done.code, done.err) == (1, "Error: The password is not encoded in UTF-8.\n")
