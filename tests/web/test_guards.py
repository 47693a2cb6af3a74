"""Who may see and do what: sign-in everywhere, roles, tokens, and walls between accounts."""

import pytest
import visit
from sqlalchemy import Engine

from console.db import make_engine

WRITERS = {"mia", "ada"}
APPROVERS = {"abe", "ada"}
STOPPERS = {"mia", "abe", "oda", "ada"}
MAY = {
    "new": WRITERS,
    "edit": WRITERS,
    "submit": WRITERS,
    "approve": APPROVERS,
    "reject": APPROVERS,
    "pause": STOPPERS,
    "resume": STOPPERS,
    "cancel": STOPPERS,
}
# Open by design: files, machines' questions, signing in, and people who leave a list (their own tests hold those).
OPEN = {
    "static",
    "bootstrap.static",
    "htmx",
    "health.alive",
    "health.ready",
    "accounts.sign_in",
    "accounts.sign_out",
    "audience.unsubscribe",
    "audience.undo",
    "inbox.receive",
}


def _rules():
    return list(visit.site(make_engine("postgresql://nobody@127.0.0.1:1/none")).url_map.iter_rules())


def _path(rule, *, number: int) -> str:
    return rule.build(dict.fromkeys(rule.arguments, number), append_unknown=False)[1]


# What programs call takes a key instead (tests/api/test_gate.py).
PRIVATE = [rule for rule in _rules() if rule.endpoint not in OPEN and not rule.endpoint.startswith("api.")]
WITH_IDS = [rule for rule in PRIVATE if rule.arguments]


def test_the_walk_over_the_routes_is_not_empty() -> None:
    assert len(PRIVATE) > 15
    assert len(WITH_IDS) > 10


def test_every_page_but_the_open_ones_asks_for_a_sign_in(engine: Engine) -> None:
    one = visit.Browser(visit.office(engine).app)
    token = one.hidden("/accounts/sign-in")["csrf_token"]
    for rule in PRIVATE:
        path = _path(rule, number=1)
        answer = one.get(path) if "GET" in rule.methods else one.client.post(path, data={"csrf_token": token})
        assert (answer.status_code, answer.location.split("?")[0]) == (303, "/accounts/sign-in"), rule.rule


def test_a_post_without_a_session_changes_nothing_and_leads_to_the_sign_in(engine: Engine) -> None:
    office = visit.office(engine, slug="acme")
    campaign_id = office.campaign("submitted")
    one = visit.Browser(office.app)
    token = one.hidden("/accounts/sign-in")["csrf_token"]
    answer = one.client.post(f"/campaigns/{campaign_id}/cancel", data={"csrf_token": token})
    assert (answer.status_code, answer.location) == (303, "/accounts/sign-in")
    assert office.row(campaign_id).status == "submitted"


def test_htmx_without_a_session_is_sent_to_the_sign_in_as_a_whole(engine: Engine) -> None:
    office = visit.office(engine)
    answer = visit.Browser(office.app).get("/today/progress", headers=visit.HTMX)
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/accounts/sign-in")


def test_another_accounts_rows_are_not_there_on_any_route(engine: Engine) -> None:
    office = visit.office(engine)
    other = visit.office(engine, slug="other", app=office.app)
    for status in ("draft", "submitted", "approved", "sending", "paused"):
        campaign_id = other.campaign(status)
        send_id = other.send(campaign_id=campaign_id)
        for name in ("ada", "mia", "abe"):
            stranger = office.browser(name)
            for rule in WITH_IDS:
                number = send_id if "send_id" in rule.arguments else campaign_id
                path = _path(rule, number=number)
                _assert_absent(stranger, path, rule)
        assert other.row(campaign_id).status == status
        owner = other.browser("ada")
        assert owner.get(f"/campaigns/{campaign_id}").status_code == 200
        assert owner.get(f"/sends/{send_id}").status_code == 200


def _assert_absent(stranger: visit.Browser, path: str, rule) -> None:
    if "GET" in rule.methods:
        assert stranger.get(path).status_code in {403, 404}, path
    if "POST" in rule.methods:
        fields = {"reason": "x", "fingerprint": "x", "when": "now", "name": "x", "list_id": "1", "html": "x"}
        answer = stranger.post(path, fields, form_at="/")
        assert answer.status_code in {403, 404, 422}, path
        if answer.status_code == 422:
            raise AssertionError(f"{path} looked at the form of a row that is not there")


def test_a_number_that_no_row_can_have_is_not_there(engine: Engine) -> None:
    one = visit.office(engine).browser("ada")
    for number in ("0", "9223372036854775808", "99999999999999999999", "-1", "x"):
        assert one.get(f"/campaigns/{number}").status_code == 404
        assert one.get(f"/sends/{number}").status_code == 404
        assert one.get(f"/sends/campaign/{number}").status_code == 404


@pytest.mark.parametrize("word", sorted(MAY))
def test_only_the_roles_that_may_see_a_page_that_changes_something_see_it(engine: Engine, word: str) -> None:
    office = visit.office(engine)
    status = {"approve": "submitted", "reject": "submitted", "pause": "sending", "resume": "paused"}.get(word, "draft")
    path = "/campaigns/new" if word == "new" else f"/campaigns/{office.campaign(status)}/{word}"
    for name in visit.PEOPLE:
        answer = office.browser(name).get(path)
        may = name in MAY[word] or (name == "max" and "mia" in MAY[word])
        assert answer.status_code == (200 if may else 403), name
        if not may:
            assert "Only people with the role" in visit.words(answer)


def test_a_form_without_its_token_does_nothing_and_says_so(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    one = office.browser("mia")
    for data in ({}, {"csrf_token": "made-up"}):
        answer = one.client.post(f"/campaigns/{campaign_id}/cancel", data=data)
        assert answer.status_code == 400
        assert "Reload the page and send it again." in visit.words(answer)
    assert office.row(campaign_id).status == "sending"


def test_the_token_of_one_session_is_no_good_in_another(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    token = office.browser("abe").hidden("/")["csrf_token"]
    answer = office.browser("mia").client.post(f"/campaigns/{campaign_id}/cancel", data={"csrf_token": token})
    assert answer.status_code == 400
    assert office.row(campaign_id).status == "sending"
