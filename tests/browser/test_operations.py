"""The operators' page in a browser: it follows by itself, and is fit to be read on a phone, in the dark, by anybody."""

from __future__ import annotations

import re
from decimal import Decimal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.site import Site
from tests.browser.test_pages import AXE, LOOKS, SIDEWAYS

SIGN_IN = """
from django.test import Client
from tests.cast import with_app
from winecellar.accounts.models import User
found = User.objects.filter(email="ops@winecellar.example").first()
client = Client()
client.force_login(with_app(found or User.objects.create_superuser("ops@winecellar.example", "an-operators-password")))
print(client.cookies["sessionid"].value)
"""
PAGE = "/admin/jobs/subscription/operations/"


@pytest.fixture
def operator(visit: Visit, site: Site) -> Page:
    key = site.manage("shell", "-v", "0", "-c", SIGN_IN).strip().splitlines()[-1]
    page = visit()
    page.context.add_cookies(
        [{"name": "sessionid", "value": key, "domain": urlsplit(site.address).hostname, "path": "/"}]
    )  # type: ignore[typeddict-item,list-item]
    return page


@pytest.fixture
def operations(operator: Page) -> Page:
    page = operator
    page.goto(PAGE)
    expect(page.get_by_role("heading", name="Needs a person now")).to_be_visible()
    return page


def test_the_operators_page_follows_without_being_loaded_again(operations: Page, site: Site) -> None:
    chip = operations.locator("section", has=operations.get_by_role("link", name="digest-delivery")).locator(".op-chip")
    expect(chip).to_have_text("idle")
    operations.evaluate("() => { window.stayed = true }")
    site.manage("subscriptions", "pause", "digest-delivery")
    try:
        expect(chip).to_have_text("paused", timeout=20_000)
        assert operations.evaluate("() => window.stayed"), "the page is the same one"
    finally:
        site.manage("subscriptions", "resume", "digest-delivery")


def test_the_operators_page_has_no_fault_in_any_look(operations: Page) -> None:
    assert faults_within(operations, "#operations") == []


def test_a_price_is_followed_from_the_search_to_the_mail_it_caused(operator: Page, site: Site) -> None:
    wine_id, merchant_id = site.ask("SELECT wine_id || ' ' || merchant_id FROM pricing_offer LIMIT 1").split()
    site.merchant_sends(merchant_id, wine_id, site.price_now(wine_id, merchant_id) - Decimal("0.01"))
    site.merchant_sends(merchant_id, wine_id, site.price_now(wine_id, merchant_id) - Decimal("0.01"))
    operator.goto("/admin/jobs/journey/")
    operator.get_by_label("Find an event").fill(wine_id)
    with operator.expect_navigation():
        operator.get_by_role("button", name="Find").click()
    assert faults_within(operator, "#content-main") == []
    with operator.expect_navigation():
        operator.locator(".jn-found a").first.click()
    lane = operator.locator(".jn-lane", has=operator.get_by_role("heading", name=re.compile("^price-history")))
    expect(lane).to_contain_text("applied, and acked in the same transaction")
    assert faults_within(operator, "#content-main") == []
    operator.goto("/admin/jobs/journey/?q=evt_nobody_knows")
    expect(operator.locator("#content-main")).to_contain_text("Nothing is known of evt_nobody_knows")


def faults_within(page: Page, part: str) -> list[str]:
    """What a reader would stumble over in our part of an admin page, in each width and palette."""
    found = []
    page.evaluate(AXE_SCRIPT)
    ours = AXE.replace("axe.run(document,", f"axe.run('{part}',")
    for width, scheme, contrast in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found += [f"{scheme}, {width} px: {fault}" for fault in page.evaluate(ours, contrast)]
        if over := page.evaluate(SIDEWAYS):
            found.append(f"at {width} px it scrolls sideways by {over}")
    return found
