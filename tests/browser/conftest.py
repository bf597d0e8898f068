"""A browser (the machine's own Chromium, driven by Playwright) and a site for it; one of each for all these tests.

Where there is no Chromium the tests are skipped with a word. With BROWSER_TESTS=required, as in CI, they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.browser.site import Site, running_site
from winecellar.demo.catalogue import COLLECTOR

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
REQUIRED = os.environ.get("BROWSER_TESTS") == "required"
PATIENCE = 15_000  # milliseconds until something that should be on a page is missed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.processes)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        why = "there is no Chromium here (Debian: apt-get install chromium)"
        if REQUIRED:
            pytest.fail(why)
        pytest.skip(why)
    # As root, and in most containers, Chromium's own sandbox does not start; it opens only pages of ours.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="package")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site with the demo's catalogue, people and prices."""
    name = f"browser_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with running_site(tmp_path_factory.mktemp("site"), name) as started:
        yield started


Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    """A new visitor's page; takes what `new_context` takes. After the test: nothing that it saw was wrong."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def begin(**options: Any) -> Page:
        context = browser.new_context(
            **{
                "base_url": site.address,
                "viewport": {"width": 1280, "height": 900},
                "reduced_motion": "reduce",
                **options,
            }
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)

        def note(message: ConsoleMessage) -> None:
            # An answer that is an error page is so on purpose, and the browser says so.
            if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
                complaints.append(f"{message.text} ({message.location.get('url')})")

        context.on("console", note)
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        context.on(
            "response",
            lambda answer: complaints.append(f"{answer.status} {answer.url}") if answer.status >= 500 else None,
        )
        return context.new_page()

    yield begin
    for context in contexts:
        context.close()
    # The content security policy's refusals are among them.
    assert complaints == []


@pytest.fixture(scope="package")
def collectors_cookies(browser: Browser, site: Site) -> Any:
    """Dana of the demo, who watches wines and has a cellar, signed in."""
    context = browser.new_context(base_url=site.address)
    page = context.new_page()
    page.goto("/sign-in")
    page.get_by_label("Email").fill(COLLECTOR.email)
    page.locator("input[type=password]").fill(COLLECTOR.password or "")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/alerts")
    state = context.storage_state()
    context.close()
    return state
