"""GET /inbox/endpoint/<endpoint_id>."""

import post
import visit
from sqlalchemy import Engine


def test_an_endpoint_shows_its_rules_its_refusals_and_no_secret(engine: Engine) -> None:
    shop = post.shop(engine)
    made = post.endpoint(
        shop.office, name="github", scheme="hmac_sha256", secret="very-secret", signature_header="X-Hub-Signature-256",
        signature_prefix="sha256=", event_type_header="X-GitHub-Event",
    )  # fmt: skip
    post.event(shop.office.app, made, b"{}", headers={"X-Request-ID": "req-9"})
    shop.draft("pushed", made=made, event_type="push")
    page = shop.office.browser("sue").get(f"/inbox/endpoint/{made.endpoint_id}")
    shown = visit.words(page)
    for words in (
        "pushed",
        "Draft",
        "http://localhost/inbox/github/…",
        "x-hub-signature-256, after sha256=, in hex",
        "the signature is missing 1",
        "req-9",
        "the header x-github-event, else $.type in the body",
        "1 secret, sealed",
    ):
        assert words in shown, words
    for secret in (made.token, "very-secret"):
        assert secret not in page.get_data(as_text=True)
    for words in ("Close the endpoint", "New rule", "Change"):
        assert words not in shown
        assert words in visit.words(shop.office.browser("ada").get(f"/inbox/endpoint/{made.endpoint_id}"))


def test_an_endpoint_of_another_account_is_not_there(engine: Engine) -> None:
    office = visit.office(engine)
    made = post.endpoint(visit.office(engine, slug="other", app=office.app))
    assert office.browser("ada").get(f"/inbox/endpoint/{made.endpoint_id}").status_code == 404
    assert office.browser("mia").get(f"/inbox/endpoint/{made.endpoint_id}").status_code == 403
