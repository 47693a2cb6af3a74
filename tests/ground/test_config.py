"""Settings: a wrong value names itself and stops the start; the secret key is made once and kept."""

import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from console import config
from console.config import DEVELOPMENT_KEY, Rate
from console.errors import ConfigError

CHECKOUT = Path(__file__).parents[2]
KEY = "k" * 32


def _load(data_dir: Path, **variables: str) -> config.Settings:
    given = {"SENDONCE_DATA_DIR": str(data_dir), "SENDONCE_SECRET_KEY": KEY}
    return config.load(given | {f"SENDONCE_{name}": value for name, value in variables.items()})


def test_the_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    settings = _load(tmp_path)
    assert settings.database_url is None
    assert (settings.tick_s, settings.batch_size, settings.connections) == (5, 20, 24)
    assert (settings.heartbeat_s, settings.dead_after_s, settings.max_rate) == (5, 30, None)
    assert (settings.smtp_dot_timeout_s, settings.smtp_timeout_s) == (600, 300)
    assert (settings.base_url, settings.is_https, settings.trusted_proxies) == ("http://127.0.0.1:8080", False, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://root@db/x"),
        ("DATABASE_URL", "postgresql://db:notaport/x"),
        ("DATABASE_URL", "postgresql://db:0/x"),
        ("BASE_URL", "mail.example.com"),
        ("BASE_URL", "ftp://mail.example.com"),
        ("SMTP_URL", "smtp://"),
        ("SMTP_URL", "smtp://mail.example.com:99999"),
        ("TICK_SECONDS", "0"),
        ("TICK_SECONDS", "soon"),
        ("TICK_SECONDS", "nan"),
        ("BATCH_SIZE", "2.5"),
        ("BATCH_SIZE", "0"),
        ("CONNECTIONS", "1000"),
        ("TRUSTED_PROXIES", "11"),
        ("TRUSTED_PROXIES", "-1"),
        ("TRUSTED_PROXIES", "127.0.0.1"),
        ("HEARTBEAT_SECONDS", "-1"),
        ("DEAD_AFTER_SECONDS", "inf"),
        ("MAX_RATE", "fast"),
        ("MAX_RATE", "0/s"),
        ("MAX_RATE", "5/day"),
        ("MAX_RATE", "\u00b2/s"),
        ("LOG_FORMAT", "xml"),
        ("DEBUG", "maybe"),
    ],
)
def test_a_wrong_value_names_its_variable_and_stops_the_start(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"SENDONCE_{name}"):
        _load(tmp_path, **{name: value})


def test_a_variable_that_does_not_exist_is_named_because_it_is_mistyped(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"SENDONCE_TICK_SECOND .*SENDONCE_TICK_SECONDS"):
        _load(tmp_path, TICK_SECOND="5")


def test_a_wrong_url_is_shown_without_its_password(tmp_path: Path) -> None:
    for name in ("DATABASE_URL", "SMTP_URL"):
        with pytest.raises(ConfigError) as refused:
            _load(tmp_path, **{name: "http://user:very-secret@host/x"})
        assert "very-secret" not in str(refused.value)


def test_a_deadline_shorter_than_two_heartbeats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SENDONCE_DEAD_AFTER_SECONDS"):
        _load(tmp_path, DEAD_AFTER_SECONDS="9", HEARTBEAT_SECONDS="5")
    assert _load(tmp_path, DEAD_AFTER_SECONDS="10", HEARTBEAT_SECONDS="5").dead_after_s == 10


@pytest.mark.parametrize(
    ("text", "rate"),
    [("50", Rate(50, 1)), ("50/s", Rate(50, 1)), ("600/min", Rate(600, 60)), ("5000/h", Rate(5000, 3600))],
)
def test_a_pace_is_a_count_in_a_period(tmp_path: Path, text: str, rate: Rate) -> None:
    assert _load(tmp_path, MAX_RATE=text).max_rate == rate


def test_an_old_form_of_the_database_url_is_understood(tmp_path: Path) -> None:
    assert _load(tmp_path, DATABASE_URL="postgres://u@h/n").database_url == "postgresql://u@h/n"


def test_a_missing_secret_key_is_made_once_with_mode_0600(tmp_path: Path) -> None:
    environ = {"SENDONCE_DATA_DIR": str(tmp_path / "new" / "data")}
    before = os.umask(0)
    try:
        first = config.load(environ).secret_key
    finally:
        os.umask(before)
    path = tmp_path / "new" / "data" / "secret_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o066 == 0
    assert len(first) > 40
    assert config.load(environ).secret_key == first


def test_processes_that_start_at_once_agree_on_the_secret_key(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from console import config; print(config.load().secret_key)"]
    environ = os.environ | {"SENDONCE_DATA_DIR": str(tmp_path / "data")}
    environ.pop("SENDONCE_SECRET_KEY", None)
    peers = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) for _ in range(4)]
    keys = {peer.communicate(timeout=30)[0].strip() for peer in peers}
    assert len(keys) == 1
    assert len(keys.pop()) > 40
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret_key"]


def test_threads_that_start_at_the_same_instant_agree_on_the_secret_key(tmp_path: Path) -> None:
    for round_no in range(20):
        environ = {"SENDONCE_DATA_DIR": str(tmp_path / str(round_no))}
        gate = threading.Barrier(8)

        def load(environ: dict[str, str] = environ, gate: threading.Barrier = gate) -> str:
            gate.wait()
            return config.load(environ).secret_key

        with ThreadPoolExecutor(8) as pool:
            keys = [asked.result() for asked in [pool.submit(load) for _ in range(8)]]
        assert len(set(keys)) == 1


def test_an_emptied_secret_key_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("")
    with pytest.raises(ConfigError, match="secret_key is empty"):
        config.load({"SENDONCE_DATA_DIR": str(tmp_path)})


def test_a_data_directory_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="SENDONCE_DATA_DIR"):
        config.load({"SENDONCE_DATA_DIR": str(tmp_path / "file" / "data")})


def test_the_development_key_is_refused_without_debug(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SENDONCE_SECRET_KEY is the development key"):
        _load(tmp_path, SECRET_KEY=DEVELOPMENT_KEY)
    assert _load(tmp_path, SECRET_KEY=DEVELOPMENT_KEY, DEBUG="1").secret_key == DEVELOPMENT_KEY


def test_a_short_secret_key_is_refused_without_being_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SENDONCE_SECRET_KEY") as refused:
        _load(tmp_path, SECRET_KEY="short-secret")
    assert "short-secret" not in str(refused.value)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["db", "--help"], ["serve", "--help"]])
def test_asking_for_help_makes_no_files(tmp_path: Path, arguments: list[str]) -> None:
    environ = os.environ | {"SENDONCE_DATA_DIR": str(tmp_path / "data"), "SENDONCE_TICK_SECONDS": "wrong"}
    command = [sys.executable, "-m", "console", *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=CHECKOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "data").exists()
