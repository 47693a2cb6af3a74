"""The console in a real browser: sign in, write, submit, approve as somebody else, watch. With scripts and without."""

import os
import re
import shutil
import threading
from collections.abc import Iterator

import make
import pytest
import visit
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright
from sqlalchemy import Engine, text
from waitress.server import create_server

from console.campaigns import ticks
from console.db import transaction

ARGUMENTS = [
    "--no-sandbox",
    "--headless=new",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; without it the tests are skipped, or fail where all must run."""
    path = shutil.which("chromium")
    with sync_playwright() as playwright:
        try:
            if path is None:
                raise FileNotFoundError("no program called chromium")
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except (FileNotFoundError, Error) as error:
            if os.environ.get("SENDONCE_TEST_REQUIRE_ALL") == "1":
                pytest.fail(f"Chromium can't be started: {error}")
            pytest.skip(f"Chromium can't be started (Debian: apt-get install chromium): {error}")
        yield browser
        browser.close()


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


@pytest.fixture
def address(office: visit.Office) -> Iterator[str]:
    """Where the console is served, over a real socket."""
    server = create_server(office.app, host="127.0.0.1", port=0, threads=4)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    server.close()
    server.task_dispatcher.shutdown()
    thread.join(timeout=10)


class Desk:
    """A person's window: signed in, and everything that the browser complained about."""

    def __init__(self, chromium: Browser, address: str, name: str, *, has_scripts: bool):
        self.context = chromium.new_context(base_url=address, java_script_enabled=has_scripts)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto("/")
        self.page.get_by_label("Account").fill("acme")
        self.page.get_by_label("E-mail address").fill(f"{name}@example.com")
        self.page.get_by_label("Password").fill(make.PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Today")).to_be_visible()

    def _note(self, message) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def close(self) -> None:
        self.context.close()


@pytest.mark.parametrize("has_scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_campaign_is_written_submitted_approved_and_watched(
    chromium: Browser, engine: Engine, office: visit.Office, address: str, has_scripts: bool
) -> None:
    mia = Desk(chromium, address, "mia", has_scripts=has_scripts)
    _write_and_submit(mia.page)
    abe = Desk(chromium, address, "abe", has_scripts=has_scripts)
    _approve(abe.page)
    assert ticks.start_due(engine, office.app.config["SENDONCE_SETTINGS"]) == 1
    _watch(abe.page, engine, office, has_scripts=has_scripts)
    _pause(abe.page, office)
    # Whatever the policy of the pages forbids, the browser says.
    assert mia.complaints == []
    assert abe.complaints == []
    mia.close()
    abe.close()


def _write_and_submit(page: Page) -> None:
    page.get_by_role("link", name="New campaign").click()
    page.get_by_label("Name").fill("Spring news")
    page.get_by_label("From").fill("Acme <news@example.com>")
    page.get_by_label("Subject").fill("Hello {{ first_name }}")
    page.get_by_label("HTML").fill("<h1>Hello {{ first_name }}</h1>")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Spring news", exact=True)).to_be_visible()
    page.get_by_role("link", name="Submit for approval…").click()
    page.get_by_role("button", name="Submit for approval").click()
    expect(page.locator("#live").get_by_text("Waits for approval")).to_be_visible()


def _approve(page: Page) -> None:
    page.get_by_role("link", name="Read and approve Spring news").click()
    expect(page.get_by_text("about 2 recipients on the list News")).to_be_visible()
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hello Rita")).to_be_visible()
    page.get_by_role("button", name=re.compile("Approve for about")).click()
    expect(page.locator("#live").get_by_text("Scheduled")).to_be_visible()


def _watch(page: Page, engine: Engine, office: visit.Office, *, has_scripts: bool) -> None:
    page.reload()
    expect(page.locator("#live").get_by_text("▶ Sending")).to_be_visible()
    with transaction(engine) as session:
        campaign_id = session.scalar(text("SELECT id FROM campaigns"))
    for number in range(2):
        office.send(campaign_id=campaign_id, status="sent", email=f"r{number}@example.com")
    if not has_scripts:
        page.reload()
    # With scripts the figures move by themselves.
    expect(page.get_by_text("2 of 2 recipients sent")).to_be_visible(timeout=10_000)


def _pause(page: Page, office: visit.Office) -> None:
    page.get_by_role("link", name="Pause…").click()
    expect(page.get_by_role("heading", name="Pause “Spring news”?")).to_be_visible()
    assert office.row(1).status == "sending"
    page.get_by_label("Reason").fill("Wrong prices")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#live").get_by_text("Wrong prices")).to_be_visible()
    expect(page.get_by_role("heading", name="Pause “Spring news”?")).to_have_count(0)
    assert office.row(1).status == "paused"


def test_the_way_can_be_gone_by_keyboard_alone(chromium: Browser, office: visit.Office, address: str) -> None:
    office.campaign("sending")
    desk = Desk(chromium, address, "oda", has_scripts=True)
    page = desk.page
    page.goto("/campaigns/1")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Pause…")).to_be_focused()
    with page.expect_response(re.compile("/progress")):
        pass
    # Not by a script of the test's own: the page's policy refuses to evaluate text, as it should.
    expect(page.locator("#live")).to_be_attached()
    expect(page.locator(".htmx-settling, .htmx-swapping")).to_have_count(0)
    # The part that moves was replaced; who stood on a button still stands on it.
    expect(page.get_by_role("link", name="Pause…")).to_be_focused()
    page.keyboard.press("Enter")
    # The question takes the focus, so that it is read out and the next Tab is in it.
    expect(page.get_by_role("heading", name="Pause “Spring news”?")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Resume…")).to_be_visible()
    assert office.row(1).status == "paused"
    desk.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_window(chromium: Browser, office: visit.Office, address: str, width: int) -> None:
    campaign_id = office.campaign("sending", name="A campaign with quite a long name of " + "many-words" * 12)
    send_id = office.send(
        campaign_id=campaign_id, status="failed", provider_reply="550 " + "no" * 200, email=f"{'a' * 60}@example.com"
    )
    waiting = office.campaign("submitted")
    desk = Desk(chromium, address, "ada", has_scripts=True)
    desk.page.set_viewport_size({"width": width, "height": 800})
    for path in (
        "/",
        "/campaigns/",
        "/campaigns/new",
        f"/campaigns/{campaign_id}",
        f"/campaigns/{waiting}/approve",
        f"/campaigns/{campaign_id}/cancel",
        "/sends/",
        f"/sends/campaign/{campaign_id}",
        f"/sends/{send_id}",
        "/nowhere",
    ):
        desk.page.goto(path)
        wide = desk.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path
    desk.close()


def test_after_a_lost_race_the_page_says_so_and_keeps_moving(
    chromium: Browser, engine: Engine, office: visit.Office, address: str
) -> None:
    office.campaign("sending")
    desk = Desk(chromium, address, "oda", has_scripts=True)
    desk.page.goto("/campaigns/1")
    desk.page.get_by_role("link", name="Pause…").click()
    expect(desk.page.get_by_role("button", name="Pause")).to_be_visible()
    with transaction(engine) as session:
        session.execute(text("UPDATE campaigns SET status = 'cancelled'"))
    desk.page.get_by_role("button", name="Pause").click()
    expect(desk.page.locator("#problem-slot")).to_contain_text("it has been cancelled")
    expect(desk.page.locator("#live").get_by_text("✕ Cancelled")).to_be_visible(timeout=10_000)
    desk.close()


def test_a_question_opened_in_a_window_of_its_own_works_there_too(
    chromium: Browser, office: visit.Office, address: str
) -> None:
    office.campaign("sending")
    desk = Desk(chromium, address, "oda", has_scripts=True)
    desk.page.goto("/campaigns/1/pause")
    desk.page.get_by_role("button", name="Pause").click()
    expect(desk.page.get_by_role("link", name="Resume…")).to_be_visible()
    assert office.row(1).status == "paused"
    desk.close()
