"""Each request has an id of its own and a correlation id, in its logs and its answer."""

import pytest
import structlog
import visit
from sqlalchemy import Engine
from structlog.testing import capture_logs

from console.web import correlation
from console.web.guards import public

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("header", "traceparent", "wanted"),
    [
        ("order-987", None, "order-987"),
        ("order-987", f"00-{TRACE}-00f067aa0ba902b7-01", "order-987"),
        (None, f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        ("no spaces", f"00-{TRACE}-00f067aa0ba902b7-00", TRACE),
        (None, f"01-{TRACE}-00f067aa0ba902b7-01-more", TRACE),
        (None, f"00-{TRACE}-00f067aa0ba902b7-01-more", None),
        (None, f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (None, f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (None, f"00-{TRACE}-{'0' * 16}-01", None),
        (None, f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        ("ann@example.com", None, None),
        ("x" * 128, None, "x" * 128),
        ("x" * 129, None, None),
        ("a\nb", None, None),
        ("", "", None),
        (None, None, None),
    ],
)
def test_a_given_correlation_id_is_taken_when_it_can_be_used(header, traceparent, wanted) -> None:
    assert correlation.given_correlation_id(header, traceparent) == wanted


def test_ids_stand_in_the_answer_and_in_what_is_logged_and_not_in_the_next_requests(engine: Engine) -> None:
    app = visit.site(engine)

    @app.get("/told")
    @public
    def told():
        structlog.get_logger("told").info("told")
        return correlation.request_id()

    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
        first = app.test_client().get("/told", headers={"X-Correlation-ID": "order-987"})
        second = app.test_client().get("/told")
    assert first.headers["X-Correlation-ID"] == "order-987"
    assert first.headers["X-Request-ID"] == first.get_data(as_text=True) != second.headers["X-Request-ID"]
    assert len(second.headers["X-Correlation-ID"]) == 32
    assert [(entry["request_id"], entry["correlation_id"]) for entry in logged] == [
        (answer.headers["X-Request-ID"], answer.headers["X-Correlation-ID"]) for answer in (first, second)
    ]
    assert structlog.contextvars.get_contextvars() == {}


def test_the_id_that_a_proxy_gave_a_request_is_kept_when_it_can_be_used(engine: Engine) -> None:
    client = visit.site(engine).test_client()
    assert client.get("/healthz", headers={"X-Request-ID": "proxy-1"}).headers["X-Request-ID"] == "proxy-1"
    for unusable in ("ann@example.com", "", "x" * 129):
        assert len(client.get("/healthz", headers={"X-Request-ID": unusable}).headers["X-Request-ID"]) == 32
