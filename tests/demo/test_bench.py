"""The bench says what was measured, against what, and whether it is enough."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from console.demo.bench import MEASURES, Result
from console.demo.children import sendonce
from console.demo.postfix import find_postfix
from console.errors import SendonceError


@pytest.mark.parametrize(
    ("name", "figures", "is_met"),
    [
        ("throughput", {"ratio": 0.30}, True),
        ("throughput", {"ratio": 0.29}, False),
        ("tenths", {"ratio": 0.89}, False),
        ("workers", {"ratio": 1.21}, True),
        ("pages", {"p95_ms": 150.1}, False),
        ("pages", {"p95_ms": 20.0}, True),
        ("idle", {"core_percent": 0.4, "rss_mb": 120.0}, True),
        ("idle", {"core_percent": 0.4, "rss_mb": 201.0}, False),
        ("idle", {"core_percent": 1.2, "rss_mb": 120.0}, False),
        ("build", {"ratio": 3.1}, False),
        ("fill", {"messages_per_s": 1.0}, True),
        ("api", {"p95_ms": 50.0, "errors": 0, "duplicates": 0, "rss_grown_mb": 20.0}, True),
        ("api", {"p95_ms": 50.1, "errors": 0, "duplicates": 0, "rss_grown_mb": 0.0}, False),
        ("api", {"p95_ms": 5.0, "errors": 1, "duplicates": 0, "rss_grown_mb": 0.0}, False),
        ("api", {"p95_ms": 5.0, "errors": 0, "duplicates": 1, "rss_grown_mb": 0.0}, False),
        ("api", {"p95_ms": 5.0, "errors": 0, "duplicates": 0, "rss_grown_mb": 20.1}, False),
        ("urgent", {"p99_ms": 1000.0, "errors": 0, "loss": 0.1}, True),
        ("urgent", {"p99_ms": 1000.1, "errors": 0, "loss": 0.0}, False),
        ("urgent", {"p99_ms": 5.0, "errors": 1, "loss": 0.0}, False),
        ("urgent", {"p99_ms": 5.0, "errors": 0, "loss": 0.11}, False),
    ],
)
def test_a_target_is_met_or_missed(name: str, figures: dict[str, float], is_met: bool) -> None:
    result = Result(name, figures)
    assert result.is_met == is_met
    assert result.document()["is_met"] == is_met
    assert result.document()["target"] == MEASURES[name].target


def test_without_the_reference_it_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SendonceError, match=r"apt-get download postfix"):
        find_postfix(None, environ={"PATH": str(tmp_path)})
    with pytest.raises(SendonceError, match=r"SENDONCE_POSTFIX_DIR is .*, but has no usr/sbin/smtp-sink"):
        find_postfix(tmp_path, environ={})


def _postfix_environ() -> dict[str, str]:
    """The environment in which the bench finds smtp-sink, as the tests are told of it."""
    sink = os.environ.get("SENDONCE_TEST_SMTP_SINK")
    kept = "SENDONCE_POSTFIX_DIR"
    environ = {name: value for name, value in os.environ.items() if name == kept or not name.startswith("SENDONCE_")}
    if sink:
        environ["SENDONCE_POSTFIX_DIR"] = str(Path(sink).parents[2])
    try:
        folder = environ.get("SENDONCE_POSTFIX_DIR")
        find_postfix(Path(folder) if folder else None, environ=environ)
    except SendonceError as error:
        if os.environ.get("SENDONCE_TEST_REQUIRE_ALL"):
            raise
        pytest.skip(str(error))
    return environ


@pytest.mark.kill
def test_each_measurement_of_sending_runs_from_end_to_end() -> None:
    """Small, for what it prints; figures of so few messages mean nothing, so missing a target is no failure here."""
    environ = _postfix_environ()
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        Path(folder).chmod(0o711)
        done = subprocess.run(
            sendonce("bench", "throughput", "workers", "pages", "build", "fill", "--recipients", "1500", "--json"),
            env=environ | {"SENDONCE_DATA_DIR": f"{folder}/data"},
            capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    by_name = {result["name"]: result for result in json.loads(done.stdout)}
    assert by_name.keys() == {"throughput", "workers", "pages", "build", "fill"}
    throughput = by_name["throughput"]
    assert 4000 <= throughput["message_bytes"] <= 6000
    assert throughput["ratio"] == pytest.approx(throughput["messages_per_s"] / throughput["reference_per_s"], rel=0.01)
    assert len(throughput["reference_runs_per_s"]) == 2
    workers = by_name["workers"]
    assert (len(workers["one_runs_per_s"]), len(workers["two_runs_per_s"])) == (3, 2)
    assert 0 < workers["one_busy_cores"] <= (os.cpu_count() or 1)
    assert by_name["pages"]["pages"] > 0
    assert by_name["pages"]["p95_ms"] >= by_name["pages"]["p50_ms"] > 0
    assert by_name["build"]["subscribers"] == 1500
    assert by_name["fill"]["messages_per_s"] > 0


def test_the_api_is_called_by_sixteen_clients_and_makes_each_message_once() -> None:
    """A hundredth of the promise's calls; the time of so few on a busy machine means nothing, but all else holds."""
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        Path(folder).chmod(0o711)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SENDONCE_")}
        done = subprocess.run(
            sendonce("bench", "api", "--recipients", "1000", "--json"),
            env=environ | {"SENDONCE_DATA_DIR": f"{folder}/data"},
            capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    (result,) = json.loads(done.stdout)
    assert (result["clients"], result["calls"], result["new"], result["repeats"]) == (16, 960, 768, 192)
    assert (result["errors"], result["duplicates"]) == (0, 0)
    assert result["rss_grown_mb"] <= 20
    assert result["p99_ms"] >= result["p95_ms"] >= result["p50_ms"] > 0


def test_urgent_messages_are_timed_from_the_call_to_the_mailbox_beside_a_campaign() -> None:
    """Small: the times mean nothing, but each message was taken by the API and has arrived."""
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        Path(folder).chmod(0o711)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SENDONCE_")}
        done = subprocess.run(
            sendonce("bench", "urgent", "--recipients", "1500", "--messages", "20", "--json"),
            env=environ | {"SENDONCE_DATA_DIR": f"{folder}/data"},
            capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    (result,) = json.loads(done.stdout)
    assert (result["recipients"], result["messages"], result["errors"]) == (1500, 20, 0)
    assert result["most_ms"] >= result["p99_ms"] >= result["p50_ms"] > 0
    assert len(result["alone_runs_per_s"]) == 2
    assert result["loss"] == pytest.approx(1 - result["campaign_per_s"] / result["alone_per_s"], abs=0.01)
