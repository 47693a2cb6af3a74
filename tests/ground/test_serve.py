"""The processes that stay: a fresh machine just works, a wrong start says why, and the end comes within 10 seconds."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data directory that does not exist yet, in a folder that the database's user can reach."""
    with tempfile.TemporaryDirectory(prefix="serve-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of the test; ended with it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def _command(*arguments: str, data_dir: Path, **variables: str) -> tuple[list[str], dict[str, str]]:
    given = {"SENDONCE_DATA_DIR": str(data_dir), "SENDONCE_TICK_SECONDS": "0.2"}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SENDONCE_")} | given
    return [sys.executable, "-m", "console", *arguments], environ | {
        f"SENDONCE_{name}": value for name, value in variables.items()
    }


def _run(*arguments: str, data_dir: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command, environ = _command(*arguments, data_dir=data_dir, **variables)
    return subprocess.run(command, env=environ, capture_output=True, text=True, cwd=CHECKOUT, check=False, timeout=60)


def _start(
    started: list[subprocess.Popen[str]], *arguments: str, data_dir: Path, **variables: str
) -> subprocess.Popen[str]:
    command, environ = _command(*arguments, data_dir=data_dir, **variables)
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT
    )
    started.append(process)
    return process


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _address(process: subprocess.Popen[str]) -> str:
    found = re.search(r"http://[\d.:]+", _first_line(process))
    assert found, process.communicate(timeout=10)
    return found[0]


def _get(url: str) -> tuple[int, dict]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def _until_ready(address: str) -> None:
    deadline = time.monotonic() + 15
    while _get(f"{address}/readyz")[0] != 200:
        assert time.monotonic() < deadline, _get(f"{address}/readyz")
        time.sleep(0.05)


def _end(process: subprocess.Popen[str], sign: signal.Signals = signal.SIGTERM) -> str:
    """Gives what it wrote to stderr; it must end well within 10 s."""
    began = time.monotonic()
    process.send_signal(sign)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    return errors


def _is_postgres_left(data_dir: Path) -> bool:
    cluster = str(data_dir / "postgres" / "data")
    found = (process.info for process in psutil.process_iter(["name", "cmdline"]))
    return any(info["name"] == "postgres" and cluster in (info["cmdline"] or []) for info in found)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_serve_on_a_fresh_machine_gets_ready_and_ends_with_its_database(
    data_dir: Path, started: list[subprocess.Popen[str]], sign: signal.Signals
) -> None:
    process = _start(started, "serve", "--port", "0", data_dir=data_dir)
    address = _address(process)
    assert _get(f"{address}/healthz")[0] == 200
    _until_ready(address)
    assert _is_postgres_left(data_dir)
    _end(process, sign)
    assert not _is_postgres_left(data_dir)


def test_a_worker_beside_a_console_without_scheduler_keeps_it_ready(
    data_dir: Path, started: list[subprocess.Popen[str]]
) -> None:
    web = _start(started, "serve", "--port", "0", "--no-scheduler", data_dir=data_dir)
    address = _address(web)
    status, document = _get(f"{address}/readyz")
    assert status == 503
    assert "No tick has run yet" in document["problems"]["scheduler"]
    worker = _start(started, "worker", data_dir=data_dir)
    assert "Sending" in _first_line(worker)
    _until_ready(address)
    _end(worker)
    assert _is_postgres_left(data_dir)
    _end(web)
    assert not _is_postgres_left(data_dir)


def test_serve_starts_again_after_everything_was_killed(data_dir: Path, started: list[subprocess.Popen[str]]) -> None:
    first = _start(started, "serve", "--port", "0", data_dir=data_dir)
    _until_ready(_address(first))
    first.kill()
    postmaster = int((data_dir / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGKILL)
    second = _start(started, "serve", "--port", "0", data_dir=data_dir)
    _until_ready(_address(second))
    _end(second)


def test_a_request_that_hangs_does_not_hold_up_the_end(data_dir: Path, started: list[subprocess.Popen[str]]) -> None:
    process = _start(started, "serve", "--port", "0", data_dir=data_dir)
    address = _address(process)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half_open:
        half_open.sendall(b"POST /accounts/sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        _end(process)


def test_a_taken_port_is_told_in_a_sentence(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _run("serve", "--port", str(port), data_dir=data_dir)
    assert done.returncode == 1
    assert f"can't listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not _is_postgres_left(data_dir)


@pytest.fixture
def unmigrated(server_url: str) -> Iterator[str]:
    name = f"unmigrated_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        base, _, query = server_url.partition("?")
        yield base.rpartition("/")[0] + f"/{name}" + (f"?{query}" if query else "")
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["worker"], ["db", "check"]])
def test_a_database_of_ones_own_that_is_not_migrated_stops_the_start(
    data_dir: Path, unmigrated: str, command: list[str]
) -> None:
    done = _run(*command, data_dir=data_dir, DATABASE_URL=unmigrated)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The database is at migration none")
    assert done.stderr.count("\n") == 1


def test_db_upgrade_and_downgrade_move_a_database_of_ones_own(data_dir: Path, unmigrated: str) -> None:
    for command in (["upgrade"], ["check"], ["downgrade", "base", "--yes"], ["upgrade", "head"]):
        done = _run("db", *command, data_dir=data_dir, DATABASE_URL=unmigrated)
        assert done.returncode == 0, done.stderr
        assert "at migration" in done.stdout


def test_a_downgrade_with_nobody_to_ask_changes_nothing(data_dir: Path, database_url: str) -> None:
    done = _run("db", "downgrade", "base", data_dir=data_dir, DATABASE_URL=database_url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "give --yes" in done.stderr
    assert _run("db", "check", data_dir=data_dir, DATABASE_URL=database_url).returncode == 0


def test_an_unreachable_database_stops_the_start_without_its_password(data_dir: Path) -> None:
    done = _run("serve", data_dir=data_dir, DATABASE_URL="postgresql://somebody:very-secret@127.0.0.1:1/ledger")
    assert done.returncode == 1
    assert "127.0.0.1:1/ledger can't be reached" in done.stderr
    assert "very-secret" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_wrong_setting_stops_the_start_by_name(data_dir: Path) -> None:
    done = _run("serve", data_dir=data_dir, BATCH_SIZE="many")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: SENDONCE_BATCH_SIZE is 'many', but takes a whole number from 1 to 1000.\n"
    assert not (data_dir / "postgres").exists()


def test_wrong_usage_is_exit_code_2(data_dir: Path) -> None:
    assert _run("serve", "--port", "99999", data_dir=data_dir).returncode == 2


def test_a_command_that_is_terminated_lets_go_of_its_database(
    data_dir: Path, started: list[subprocess.Popen[str]]
) -> None:
    """SIGTERM while `serve` is still starting must not leave its database running for nobody."""
    process = _start(started, "serve", "--port", "0", data_dir=data_dir)
    deadline = time.monotonic() + 20
    while not (data_dir / "postgres" / "data" / "postmaster.pid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode in {0, 143}
    assert not _is_postgres_left(data_dir)


def test_serve_sees_who_is_behind_a_trusted_proxy(data_dir: Path, started: list[subprocess.Popen[str]]) -> None:
    process = _start(started, "serve", "--port", "0", "--no-scheduler", data_dir=data_dir, TRUSTED_PROXIES="1")
    with httpx.Client(base_url=_address(process)) as client:
        form = client.get("/accounts/sign-in").text
        token = re.search(r'name="csrf_token"[^>]* value="([^"]+)"', form)
        assert token
        fields = {"csrf_token": token[1], "account": "acme", "email": "mia@example.com", "password": "wrong"}

        def try_from(machine: str) -> int:
            return client.post("/accounts/sign-in", data=fields, headers={"X-Forwarded-For": machine}).status_code

        assert [try_from("203.0.113.7") for _ in range(6)] == [422] * 5 + [429]
        assert try_from("203.0.113.8") == 422
    _end(process)
