"""Errors as pages: what happened, what to do next, and never a traceback."""

import pytest
import visit
from sqlalchemy import Engine

from console.db import make_engine
from console.errors import Conflict, DatabaseError, Forbidden, InvalidInput, NotFound
from console.web.guards import public

CASES = [
    (NotFound("There is no such thing. Look elsewhere."), 404),
    (Conflict("It was paused meanwhile. Look again."), 409),
    (Forbidden("Only admins may. Ask one."), 403),
    (InvalidInput("That is no number. Type one.", field="x"), 422),
    (DatabaseError("It is too old. Upgrade it."), 503),
]


def _raising(engine: Engine, error: Exception):
    app = visit.site(engine)

    @app.route("/raise", methods=["GET", "POST"])
    @public
    def raising():
        raise error

    app.extensions["csrf"].exempt(raising)
    return app.test_client()


@pytest.mark.parametrize(("error", "status"), CASES)
def test_an_error_of_the_house_becomes_its_status_with_its_words(engine: Engine, error, status: int) -> None:
    answer = _raising(engine, error).get("/raise")
    assert answer.status_code == status
    assert str(error) in visit.words(answer)
    assert "<!doctype html>" in answer.get_data(as_text=True)


def test_htmx_gets_a_fragment_for_the_place_of_problems(engine: Engine) -> None:
    client = _raising(engine, Conflict("It was paused meanwhile."))
    posted = client.post("/raise", headers=visit.HTMX)
    assert (posted.status_code, posted.headers["HX-Retarget"]) == (409, "#problem-slot")
    assert "<!doctype html>" not in posted.get_data(as_text=True)
    assert client.get("/raise", headers=visit.HTMX).headers["HX-Retarget"] == "#stale"


def test_a_fault_of_ours_shows_no_traceback_and_none_of_its_words(engine: Engine) -> None:
    answer = _raising(engine, RuntimeError("secret-detail")).get("/raise")
    assert answer.status_code == 500
    page = answer.get_data(as_text=True)
    assert "Something broke on our side" in page
    assert "secret-detail" not in page
    assert "Traceback" not in page


def test_a_page_that_is_not_there_says_where_to_start(engine: Engine) -> None:
    answer = visit.office(engine).browser("mia").get("/campaigns/999")
    assert answer.status_code == 404
    assert "There is no campaign 999 in this account." in visit.words(answer)
    assert 'href="/"' in answer.get_data(as_text=True)


def test_without_a_database_a_page_says_so_and_that_nothing_is_lost() -> None:
    app = visit.site(make_engine("postgresql://nobody@127.0.0.1:1/none"))
    answer = app.test_client().get("/accounts/sign-in")
    assert answer.status_code == 503
    assert "Nothing is lost" in visit.words(answer)


def test_what_is_too_large_is_refused_with_the_limit(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    answer = one.client.post("/campaigns/new", data={"html": "x" * 5_000_000})
    assert answer.status_code == 413
    assert "4 MB" in visit.words(answer)
