"""By keyboard alone: everything that can be reached shows that it is, and a wine can be watched."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visit
from tests.browser.site import Site

# What has the focus: its words, whether something of it is in sight, and whether a ring is drawn around it.
FOCUSED = """() => {
    const e = document.activeElement;
    if (!e || e === document.body) return null;
    const s = getComputedStyle(e), box = e.getBoundingClientRect();
    return {
        words: (e.getAttribute("name") || e.innerText || e.tagName).trim().slice(0, 60),
        ring: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2,
        in_sight: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    };
}"""
FOCUSABLE = "a[href], button, summary, input:not([type=hidden]), select, textarea"
MOST = 300


def walk(page: Page) -> list[dict[str, Any]]:
    """Tab from the beginning of the page to its end."""
    seen: list[dict[str, Any]] = []
    for _ in range(MOST):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            return seen
        seen.append(focused)
    raise AssertionError(f"no end after {MOST}: {seen[-3:]}")


@pytest.mark.parametrize("path", ["/", "/wines/wn_4417", "/alerts", "/cellar", "/account", "/sign-up", "/feeds/"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_has_the_focus_can_be_seen(visit: Visit, collectors_cookies: Any, path: str, scheme: str) -> None:
    page = visit(storage_state=None if path == "/sign-up" else collectors_cookies, color_scheme=scheme)
    page.goto(path)
    seen = walk(page)
    assert [each["words"] for each in seen if not (each["ring"] and each["in_sight"])] == []
    there = page.locator(FOCUSABLE).evaluate_all("all => all.filter(e => e.checkVisibility()).length")
    assert len(seen) >= there, "each can be reached"


def test_the_first_stop_leads_past_the_menu(visit: Visit) -> None:
    page = visit()
    page.goto("/wines/wn_4417")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)["words"] == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.querySelector('main').contains(document.activeElement)")


def tab_to(page: Page, words: str) -> None:
    for _ in range(MOST):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused and focused["words"] == words:
            return
    raise AssertionError(f"{words} was not reached")


def test_a_wine_is_watched_without_a_mouse(visit: Visit, site: Site, collectors_cookies: Any) -> None:
    page = visit(storage_state=collectors_cookies)
    page.goto("/wines/wn_4408")
    tab_to(page, "target")
    page.keyboard.type("55.55")
    tab_to(page, "Tell me")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "$55.55" in page.locator("main").inner_text()
    assert site.ask("SELECT count(*) FROM alerts_alert WHERE target = 55.55") == 1
