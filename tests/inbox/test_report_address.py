"""The screen and the command that make the address of a provider's reports."""

import json

import post
import visit
from click.testing import CliRunner
from providers import configure, told
from sqlalchemy import Engine

from console.cli import cli


def test_the_address_is_made_and_shown_once(engine: Engine) -> None:
    office = visit.office(engine)
    made = configure.provider(engine, office.account_id, kind="postmark")
    browser, path = office.browser("ada"), f"/inbox/report-address/{made}"
    assert "none yet" in visit.words(browser.get(path))
    words = visit.words(browser.post(path, {"make": "1"}))
    url = next(word for word in words.split() if "/inbox/reports/postmark/" in word)
    assert office.app.test_client().post(url.removeprefix("http://localhost"), json={}).status_code == 200
    again = visit.words(browser.get(path))
    assert "made" in again
    assert url not in again


def test_a_new_address_ends_the_old_one(engine: Engine) -> None:
    office = visit.office(engine)
    made = configure.provider(engine, office.account_id, kind="postmark")
    browser, path = office.browser("ada"), f"/inbox/report-address/{made}"
    urls = []
    for _ in range(2):
        words = visit.words(browser.post(path, {"make": "1"}))
        urls.append(next(word for word in words.split() if "/reports/" in word).removeprefix("http://localhost"))
    client = office.app.test_client()
    assert [client.post(url, json={}).status_code for url in urls] == [404, 200]


def test_the_secret_is_taken_and_never_shown(engine: Engine) -> None:
    office = visit.office(engine)
    made = configure.provider(engine, office.account_id, kind="resend")
    browser, path = office.browser("ada"), f"/inbox/report-address/{made}"
    assert browser.post(path, {"secret": post.WEBHOOK_SECRET}).status_code == 409
    browser.post(path, {"make": "1"})
    assert "takes nothing before its secret is entered" in visit.words(browser.get(path))
    wrong = browser.post(path, {"secret": "swordfish"})
    assert wrong.status_code == 422
    assert 'id="secret-error"' in wrong.get_data(as_text=True)
    assert "swordfish" not in wrong.get_data(as_text=True)
    assert browser.post(path, {"secret": post.WEBHOOK_SECRET}).status_code == 303
    page = browser.get(path).get_data(as_text=True)
    assert "A secret is kept" in page
    assert post.WEBHOOK_SECRET not in page
    assert post.WEBHOOK_SECRET not in str(post.rows(office, "SELECT p::text FROM inbox_endpoints p"))


def test_what_does_not_report_says_so(engine: Engine) -> None:
    office = visit.office(engine)
    made = configure.provider(engine, office.account_id, kind="file", secret=None)
    browser = office.browser("ada")
    assert "reports nothing by HTTP" in visit.words(browser.get(f"/inbox/report-address/{made}"))
    assert browser.post(f"/inbox/report-address/{made}", {"make": "1"}, form_at="/providers/").status_code == 422


def test_only_admins_may(engine: Engine) -> None:
    office = visit.office(engine)
    made = configure.provider(engine, office.account_id, kind="postmark")
    assert office.browser("oda").get(f"/inbox/report-address/{made}").status_code == 403
    answer = office.browser("oda").post(f"/inbox/report-address/{made}", {"make": "1"}, form_at="/")
    assert answer.status_code == 403
    assert post.rows(office, "SELECT id FROM inbox_endpoints") == []


def test_another_accounts_provider_is_not_there(engine: Engine) -> None:
    office = visit.office(engine)
    theirs = configure.provider(engine, visit.office(engine, slug="other", app=office.app).account_id, kind="postmark")
    assert office.browser("ada").get(f"/inbox/report-address/{theirs}").status_code == 404


def test_the_command_prints_the_address_and_takes_the_secret(engine: Engine, database_url: str) -> None:
    office = visit.office(engine)
    configure.provider(engine, office.account_id, kind="postmark", name="main")
    environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": configure.SECRET_KEY}
    asked = ["provider", "reports", "main", "--account", "acme"]
    made = CliRunner().invoke(cli, [*asked, "--json"], env=environment)
    url = json.loads(made.output)["url"]
    set_ = CliRunner().invoke(cli, [*asked, "--secret-stdin"], env=environment, input="ann:swordfish\n")
    assert set_.exit_code == 0
    assert "swordfish" not in set_.output
    path = url[url.index("/inbox/") :]
    assert office.app.test_client().post(path, json=told.postmark("Open")).status_code == 401
