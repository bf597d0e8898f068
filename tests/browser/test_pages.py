"""Every page, in light and dark, narrow and wide: no fault that axe knows by WCAG 2.2 AA, and nothing that scrolls
sideways, at 320 pixels, at 200 % zoom, or with letters twice as large."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.urls import URLPattern, URLResolver, get_resolver
from playwright.sync_api import Page

from alerts.digest.facts import Cellar, Close, Drop, Fired, Week, kept
from alerts.unsubscribe import Scope, Wish, token
from tests.browser.conftest import Visit
from tests.browser.pages import DANA, ERRORS, NO_PAGES, PAGES, STRANGER, At
from tests.browser.site import Site
from tests.cellars.exports import inventory
from tests.processes.conftest import wait_until
from winecellar.demo.catalogue import COLLECTOR

# Width, palette, and whether contrast is looked at: it does not hang on the width, and takes ten times as long as all
# other rules, which do not hang on the palette.
LOOKS = ((320, "light", True), (320, "dark", False), (1280, "dark", True), (1280, "light", False))
AXE = """async contrast => (await axe.run(document, {
    resultTypes: ["violations"],
    runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    rules: {"color-contrast": {enabled: contrast}},
})).violations.flatMap(({id, nodes}) => nodes.map(node => `${id}: ${node.target.join(" ")}: ${node.failureSummary}`))"""
# How far the page can be moved sideways, and what reaches furthest.
SIDEWAYS = """() => {
    const root = document.documentElement, over = root.scrollWidth - root.clientWidth;
    if (over <= 0) return null;
    const reaching = [...document.querySelectorAll("body *")].filter(
        e => e.getBoundingClientRect().right > root.clientWidth + 1);
    return `${over} px: ${reaching.slice(-3).map(e => e.outerHTML.slice(0, 120)).join(" | ")}`;
}"""


@pytest.fixture(scope="package")
def facts(site: Site, browser: Any, collectors_cookies: Any) -> dict[str, Any]:
    """What the paths of pages.py name: an alert that waits and one that was met, a bottle, a file that waits."""
    of_dana = "FROM alerts_alert a JOIN accounts_user u ON u.id = a.user_id WHERE u.email = 'demo@winecellar.example'"
    met = site.ask(f"SELECT a.id {of_dana} AND a.wine_id = 'wn_4605'")
    target = site.ask("SELECT target FROM alerts_alert WHERE id = %s", met)
    merchant = site.ask("SELECT merchant_id FROM pricing_offer WHERE wine_id = 'wn_4605' ORDER BY price_usd LIMIT 1")
    site.merchant_sends(merchant, "wn_4605", target - 1)
    state = "SELECT state FROM alerts_alert WHERE id = %s"
    wait_until(lambda: site.ask(state, met) == "fired", seconds=60, what="an alert is met")

    context = browser.new_context(base_url=site.address, storage_state=collectors_cookies)
    page = context.new_page()
    page.goto("/cellar/import")
    page.locator("main input[type=file]").set_input_files(
        {"name": "bottles.csv", "mimeType": "text/csv", "buffer": inventory("0100", "0101")}
    )
    with page.expect_navigation():
        page.locator("main form button[type=submit]").first.click()
    preview = page.url.rpartition("/")[2]
    stock = site.ask("SELECT min(id) FROM purchases_stockitem WHERE on_hand > 2")
    purchase = buys(page, site, stock)
    context.close()
    assert preview.isdigit(), "the file is shown before it is taken"
    dana = site.ask("SELECT id FROM accounts_user WHERE email = 'demo@winecellar.example'")
    return {
        "wine": "wn_4417",
        "dear_wine": "wn_4406",
        "alert": site.ask(f"SELECT a.id {of_dana} AND a.wine_id = 'wn_4417'"),
        "met_alert": met,
        "bottle": site.ask("SELECT min(id) FROM cellars_bottle WHERE quantity > 0"),
        "preview": preview,
        "stock": stock,
        "sold_wine": site.ask("SELECT wine_id FROM purchases_stockitem WHERE id = %s", stock),
        "purchase": purchase,
        "digest": a_digest(site, dana),
        "unsubscribe": token(Wish(Scope.ALERT, dana, met)),
    }


def buys(page: Page, site: Site, stock: int) -> int:
    """Two bottles, from “add a card” to the receipt, by way of the payment provider's page."""
    page.goto(f"/buy/{stock}")
    page.get_by_role("button", name="Add a card").click()
    page.get_by_role("link", name="Go to the payment provider").click()
    page.get_by_role("button", name="A card that works").click()
    page.wait_for_url(f"**/buy/{stock}")
    page.get_by_label("Bottles").select_option("2")
    page.get_by_role("button", name="Buy and pay").click()
    page.wait_for_url("**/purchases/*")
    pk = int(page.url.rpartition("/")[2])
    state = "SELECT state FROM purchases_purchase WHERE id = %s"
    wait_until(lambda: site.ask(state, pk) == "completed", seconds=60, what="the purchase is completed")
    return pk


def a_digest(site: Site, user_id: int) -> int:
    """A week with a line in every part: the demo has no Monday."""
    week = Week(
        drops=[Drop("wn_4417", "Ch. Montrose 2016", Decimal(189), Decimal(154), "Merchant X")],
        drop_count=2,
        fired=[Fired(1, "Ch. Montrose 2016", "USD", Decimal(154), Decimal(160), "Merchant X")],
        fired_count=1,
        close=[Close(1, "Ch. Montrose 2016", "EUR", Decimal(154), Decimal(150))],
        cellar=Cellar("USD", Decimal(1_200), Decimal(1_100)),
    )
    made = site.ask(
        "INSERT INTO alerts_digest (user_id, monday, facts, state, created_at, settled_at)"
        " VALUES (%s, '2026-03-16', %s, 'sent', now(), now()) RETURNING id",
        user_id,
        json.dumps(kept(week)),
    )
    return int(made)


def names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "admin":  # Django's own pages
                yield from names(pattern.url_patterns)
        elif pattern.name:
            yield pattern.name


def test_every_page_is_looked_at_or_it_is_said_why_not() -> None:
    looked_at = {page.name for page in PAGES} - ERRORS
    left_out = set().union(*NO_PAGES.values())
    assert looked_at & left_out == set()
    assert looked_at | left_out == set(names(get_resolver().url_patterns))


def faults(page: Page) -> list[str]:
    """Of the page as it is loaded, in both palettes and all widths."""
    found: dict[str, None] = {}
    page.evaluate(AXE_SCRIPT)
    for width, scheme, contrast in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found |= dict.fromkeys(f"{scheme}, {width} px: {fault}" for fault in page.evaluate(AXE, contrast))
    for width, letters in ((320, 100), (640, 100), (1280, 100), (1280, 200)):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("size => { document.documentElement.style.fontSize = size }", f"{letters}%")
        if over := page.evaluate(SIDEWAYS):
            found[f"at {width} px with letters at {letters} % it scrolls sideways by {over}"] = None
    return list(found)


@pytest.mark.parametrize("at", PAGES, ids=str)
def test_a_page_has_no_fault(visit: Visit, facts: dict[str, Any], collectors_cookies: Any, at: At) -> None:
    page = visit(storage_state=collectors_cookies if at.who == DANA else None)
    path = at.path.format(**facts)
    answer = page.goto(path)
    if at.name != "account_reauthenticate" and "/account/it-is-you" in page.url:
        page.locator("main input[type=password]").fill(COLLECTOR.password or "")
        with page.expect_navigation() as there:
            page.locator("main button[type=submit]").click()
        answer = there.value
    assert answer is not None
    assert answer.status == at.status
    assert page.url.endswith(path), "it was not sent elsewhere"
    assert faults(page) == []


@pytest.mark.parametrize("path", ["/wines/{wine}", "/alerts/{alert}", "/cellar"])
def test_a_wide_screen_shows_two_columns_apart_and_the_menu_in_one_line(
    visit: Visit, facts: dict[str, Any], collectors_cookies: Any, path: str
) -> None:
    page = visit(storage_state=collectors_cookies)
    page.goto(path.format(**facts))
    columns, between, lines = page.evaluate(
        """() => {
            const style = getComputedStyle(document.querySelector(".wine-page, .alert-page, .cellar-page"));
            const tops = [...document.querySelectorAll(".masthead nav li")].map(e => e.getBoundingClientRect().top);
            return [style.gridTemplateColumns.split(" ").length, style.rowGap, new Set(tops).size];
        }"""
    )
    assert (columns, between, lines) == (2, "40px", 1)


def test_the_faults_would_be_found(visit: Visit) -> None:
    page = visit()
    page.goto("/")
    page.evaluate(
        """() => {
            const p = document.createElement("p");
            p.style.cssText = "color: #ccc; background: #fff; width: 2000px";
            p.innerHTML = "pale <img src='/static/favicon.svg'>";
            document.querySelector("main").append(p);
        }"""
    )
    said = "\n".join(faults(page))
    assert "color-contrast" in said
    assert "image-alt" in said
    assert "scrolls sideways" in said


assert {at.who for at in PAGES} == {STRANGER, DANA}
