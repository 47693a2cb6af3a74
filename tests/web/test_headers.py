"""Security headers and cookies."""

import re

import visit
from sqlalchemy import Engine

from console.paths import STATIC, TEMPLATES


def test_every_page_forbids_inline_script_foreign_sources_and_frames(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    one = office.browser("mia")
    for path in ("/", f"/campaigns/{campaign_id}", "/sends/", "/nowhere", "/static/sendonce.css"):
        headers = one.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "style-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"
    assert "Strict-Transport-Security" not in one.get("/").headers


def test_pages_of_a_signed_in_person_are_kept_out_of_caches(engine: Engine) -> None:
    assert visit.office(engine).browser("mia").get("/").headers["Cache-Control"] == "no-store"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(engine: Engine) -> None:
    answer = visit.Browser(visit.office(engine).app).sign_in()
    cookie = next(value for value in answer.headers.getlist("Set-Cookie") if value.startswith("sendonce="))
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie


def test_with_an_https_address_the_cookie_is_secure_and_browsers_are_told_to_stay_there(engine: Engine) -> None:
    office = visit.office(engine, base_url="https://mail.example.com")
    one = visit.Browser(office.app)
    answer = one.client.get("/accounts/sign-in", base_url="https://mail.example.com")
    cookie = next(value for value in answer.headers.getlist("Set-Cookie") if value.startswith("sendonce="))
    assert "Secure" in cookie
    assert "max-age=" in answer.headers["Strict-Transport-Security"]


def test_no_template_needs_what_the_policy_forbids() -> None:
    for path in TEMPLATES.rglob("*.html"):
        html = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)", html), path
        assert not re.search(r"\s(style|on[a-z]+)=\"", html), path
        assert "<style" not in html, path
        assert not re.search(r"(src|href)=\"(https?:)?//", html), path


def test_nothing_is_loaded_from_elsewhere(engine: Engine) -> None:
    office = visit.office(engine)
    one = visit.Browser(office.app)
    page = one.get("/accounts/sign-in").get_data(as_text=True)
    files = re.findall(r"<(?:script|link)[^>]*(?:src|href)=\"([^\"]+)\"", page)
    assert len(files) == 4
    for path in files:
        assert path.startswith("/")
        assert one.get(path).status_code == 200, path
    assert "@import" not in (STATIC / "sendonce.css").read_text()
