"""Who may see and do what: sign-in everywhere, roles, tokens, and walls between accounts."""

import make
import pytest
import visit
from sqlalchemy import Engine
from werkzeug.routing import Rule

from console.accounts import keys
from console.db import make_engine, transaction

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
# Open by design: files, machines' questions and signing in (their own tests hold those).
OPEN = {
    "static",
    "bootstrap.static",
    "htmx",
    "health.alive",
    "health.ready",
    "accounts.sign_in",
    "accounts.sign_out",
}


def _rules() -> list[Rule]:
    rules = visit.site(make_engine("postgresql://nobody@127.0.0.1:1/none")).url_map.iter_rules()
    # The API takes keys instead (tests/api/test_gate.py).
    return [rule for rule in rules if not rule.endpoint.startswith("api.")]


def _path(rule: Rule, **numbers: int) -> str:
    """Gives the rule's path with the numbers that are known, and 1 for the others."""
    built = rule.build({name: numbers.get(name, 1) for name in rule.arguments}, append_unknown=False)
    assert built
    return built[1]


# A token in the path is a guard of its own: who leaves a list, and programs that call, have no session.
PRIVATE = [rule for rule in _rules() if rule.endpoint not in OPEN and "token" not in rule.arguments]
# Closes what is open, and tells nobody whether there was anything (tests/inbox/test_close_notice.py).
TELLS_NOTHING = "inbox.close_notice"
WITH_IDS = [rule for rule in PRIVATE if rule.arguments and rule.endpoint != TELLS_NOTHING]
OF_CAMPAIGNS = [rule for rule in WITH_IDS if {"campaign_id", "send_id"} & rule.arguments]


def test_the_walk_over_the_routes_is_not_empty() -> None:
    assert len(PRIVATE) > 15
    assert len(OF_CAMPAIGNS) > 10
    assert len(WITH_IDS) > len(OF_CAMPAIGNS)


def test_every_page_but_the_open_ones_asks_for_a_sign_in(engine: Engine) -> None:
    one = visit.Browser(visit.office(engine).app)
    token = one.hidden("/accounts/sign-in")["csrf_token"]
    for rule in PRIVATE:
        path = _path(rule)
        answer = one.get(path) if "GET" in rule.methods else one.client.post(path, data={"csrf_token": token})
        assert answer.location, rule.rule
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
    with transaction(engine) as session:
        numbers = {
            "key_id": keys.add_key(session, other.account_id, scopes=["read"]).id,
            "endpoint_id": make.endpoint(session, other.account_id).endpoint_id,
        }
    for name in ("ada", "oda"):
        stranger = office.browser(name)
        for rule in WITH_IDS:
            if rule not in OF_CAMPAIGNS:
                _assert_absent(stranger, _path(rule, **numbers), rule)


def test_another_accounts_campaigns_and_sends_are_not_there_in_any_state(engine: Engine) -> None:
    office = visit.office(engine)
    other = visit.office(engine, slug="other", app=office.app)
    for status in ("draft", "submitted", "approved", "sending", "paused"):
        campaign_id = other.campaign(status)
        send_id = other.send(campaign_id=campaign_id)
        for name in ("ada", "mia", "abe"):
            stranger = office.browser(name)
            for rule in OF_CAMPAIGNS:
                _assert_absent(stranger, _path(rule, campaign_id=campaign_id, send_id=send_id), rule)
        assert other.row(campaign_id).status == status
        owner = other.browser("ada")
        assert owner.get(f"/campaigns/{campaign_id}").status_code == 200
        assert owner.get(f"/sends/{send_id}").status_code == 200


def _assert_absent(stranger: visit.Browser, path: str, rule: Rule) -> None:
    methods = rule.methods or set()
    if "GET" in methods:
        assert stranger.get(path).status_code in {403, 404}, path
    if "POST" in methods:
        fields = {
            "reason": "x",
            "fingerprint": "x",
            "when": "now",
            "name": "x",
            "list_id": "1",
            "html": "x",
            "version": "1",
        }
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
