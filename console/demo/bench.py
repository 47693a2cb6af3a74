"""The bench: which measurements there are, what each must reach, and what is printed. Each is measured elsewhere.

Figures are ratios against a reference taken in the same run, so that they mean something on any machine.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from console.demo import bench_api, bench_build, bench_fill, bench_pages, bench_runs, bench_urgent
from console.demo.place import Place, own_place
from console.demo.postfix import Postfix, find_postfix
from console.demo.show import Show

RECIPIENTS = 30_000
LONG_RECIPIENTS = 200_000
BUILD_SUBSCRIBERS = 1_000_000
API_CALLS = 100_000
URGENT_RECIPIENTS = 50_000


class Measure(NamedTuple):
    """One figure: its words, the key of the figure that has a target, and the target (None: none)."""

    title: str
    key: str
    target: float | None
    is_at_least: bool = True
    recipients: int = RECIPIENTS
    short: int = RECIPIENTS  # the most that it takes without --long


MEASURES = {
    "throughput": Measure("one worker against smtp-source -s 8 -d", "ratio", 0.30),
    "tenths": Measure("last tenth of a campaign against its first", "ratio", 0.9, recipients=LONG_RECIPIENTS),
    "workers": Measure("two workers against one", "ratio", 1.2),
    "pages": Measure("console pages at full speed, 95th percentile in ms", "p95_ms", 150, is_at_least=False),
    "idle": Measure("idle `serve`, percent of a core", "core_percent", 1.0, is_at_least=False),
    "build": Measure("audience build against a bare INSERT", "ratio", 3.0, False, BUILD_SUBSCRIBERS),
    "api": Measure("calls by 16 clients, a fifth repeats, 95th percentile in ms", "p95_ms", 50, False, API_CALLS),
    "urgent": Measure(
        "urgent messages beside a campaign, 99th percentile in ms",
        "p99_ms",
        1000,
        False,
        URGENT_RECIPIENTS,
        URGENT_RECIPIENTS,
    ),
    "fill": Measure("messages filled per second on one core", "messages_per_s", None),
}
IDLE_RSS_MB = 200
# What else a figure must keep to, wherever it is taken: the most that it may be.
LIMITS = {"rss_mb": IDLE_RSS_MB, "rss_grown_mb": 20, "errors": 0, "duplicates": 0, "loss": 0.1}


@dataclass(frozen=True)
class Result:
    """One measurement with all its figures."""

    name: str
    figures: dict[str, Any]

    @property
    def is_met(self) -> bool:
        measure, figures = MEASURES[self.name], self.figures
        if measure.target is None:
            return True
        figure = figures[measure.key]
        is_met = figure >= measure.target if measure.is_at_least else figure <= measure.target
        return is_met and all(figures.get(name, 0) <= most for name, most in LIMITS.items())

    def document(self) -> dict[str, Any]:
        """Gives what --json prints."""
        return {
            "name": self.name,
            "title": MEASURES[self.name].title,
            "target": MEASURES[self.name].target,
            "is_met": self.is_met,
            **self.figures,
        }


def run(
    show: Show,
    names: list[str],
    *,
    environ: Mapping[str, str],
    recipients: int | None,
    is_long: bool,
    urgent_count: int = bench_urgent.MESSAGES,
) -> list[Result]:
    """Takes the named measurements one after the other, each in a database of its own, and shows them.

    Takes:  recipients, for each campaign, None: what the measure asks for; is_long False: campaigns of at most
            `short` where a measure asks for more; urgent_count, how many urgent messages.
    Raises: SendonceError when smtp-sink or smtp-source is missing, or something does not run.
    """
    results = []
    for name in names:
        measure = MEASURES[name]
        count = recipients or (measure.recipients if is_long else min(measure.recipients, measure.short))
        show.say(f"{name}: {measure.title} ...")
        began = time.monotonic()
        # Default settings, but for where things are.
        kept = ("SENDONCE_DATA_DIR", "SENDONCE_POSTFIX_DIR")
        bare = {key: value for key, value in environ.items() if not key.startswith("SENDONCE_") or key in kept}
        with own_place("bench", environ=bare, overrides={"SENDONCE_LOG_FORMAT": "text"}) as place:
            result = Result(name, _measure(name, place, recipients=count, urgent_count=urgent_count))
        results.append(result)
        show.say(f"  {_words(result)}   ({time.monotonic() - began:.0f} s)")
    return results


def _measure(name: str, place: Place, *, recipients: int, urgent_count: int) -> dict[str, Any]:
    match name:
        case "throughput":
            return bench_runs.against_reference(place, _postfix(place), recipients=recipients)
        case "tenths":
            return bench_runs.tenths(place, _postfix(place), recipients=recipients)
        case "workers":
            return bench_runs.two_workers(place, _postfix(place), recipients=recipients)
        case "pages":
            return bench_pages.pages(place, _postfix(place), recipients=recipients)
        case "idle":
            return bench_pages.idle(place)
        case "api":
            return bench_api.measure(place, call_count=recipients)
        case "urgent":
            return bench_urgent.measure(place, recipients=recipients, message_count=urgent_count)
        case "build":
            return _build(place, subscriber_count=recipients)
        case _:
            return {"messages_per_s": round(bench_fill.run(), 1), "message_bytes": bench_runs.message_bytes()}


def _postfix(place: Place) -> Postfix:
    return find_postfix(place.settings.postfix_dir, environ=place.environ)


def _build(place: Place, *, subscriber_count: int) -> dict[str, Any]:
    figures = bench_build.measure(place.engine, place.settings, subscriber_count=subscriber_count)
    return {
        "subscribers": figures.subscriber_count,
        "bare_s": round(figures.bare_s, 2),
        "build_s": round(figures.build_s, 2),
        "longest_chunk_s": round(figures.longest_chunk_s, 2),
        "grown_mb": round(figures.grown_bytes / 1e6, 1),
        "ratio": round(figures.ratio, 3),
    }


def _words(result: Result) -> str:
    measure = MEASURES[result.name]
    words = f"{measure.key} {result.figures[measure.key]:,}"
    if measure.target is not None:
        bound = "at least" if measure.is_at_least else "at most"
        words += f" ({bound} {measure.target:g}: {'met' if result.is_met else 'MISSED'})"
    rest = {key: value for key, value in result.figures.items() if key != measure.key}
    return words + "; " + ", ".join(f"{key} {value}" for key, value in rest.items())
