"""The button that asks a provider whether it would take messages."""

import visit
from peers import dialects
from peers.vendor import SECRET, Vendor
from providers.configure import provider
from sqlalchemy import Engine


def test_a_provider_that_knows_us_is_said_to_be_fine(engine: Engine) -> None:
    office = visit.office(engine)
    with Vendor(dialects.Postmark()) as vendor:
        made = provider(engine, office.account_id, kind="postmark", secret=SECRET, settings={"base_url": vendor.url})
        browser = office.browser("ada")
        answer = browser.post(f"/providers/{made}/check", form_at="/providers/")
        assert answer.status_code == 303
        assert "main answers and knows us." in visit.words(browser.get(answer.location))
        assert (vendor.questions, vendor.sends) == (1, 0)


def test_a_wrong_key_is_said_without_the_key(engine: Engine) -> None:
    office = visit.office(engine)
    with Vendor(dialects.Brevo()) as vendor:
        made = provider(engine, office.account_id, kind="brevo", secret="swordfish", settings={"base_url": vendor.url})
        browser = office.browser("ada")
        answer = browser.post(f"/providers/{made}/check", form_at="/providers/")
        words = visit.words(browser.get(answer.location))
        assert "main takes nothing: HTTP 401" in words
        assert "swordfish" not in words


def test_only_admins_may(engine: Engine) -> None:
    office = visit.office(engine)
    made = provider(engine, office.account_id)
    assert office.browser("oda").post(f"/providers/{made}/check", form_at="/").status_code == 403
