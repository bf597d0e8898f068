"""The operators' page in a browser: it follows by itself, and is fit to be read on a phone, in the dark, by anybody."""

from __future__ import annotations

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
def operations(visit: Visit, site: Site) -> Page:
    key = site.manage("shell", "-v", "0", "-c", SIGN_IN).strip().splitlines()[-1]
    page = visit()
    page.context.add_cookies(
        [{"name": "sessionid", "value": key, "domain": urlsplit(site.address).hostname, "path": "/"}]
    )  # type: ignore[typeddict-item,list-item]
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
    found = []
    operations.evaluate(AXE_SCRIPT)
    ours = AXE.replace("axe.run(document,", "axe.run('#operations',")
    for width, scheme, contrast in LOOKS:
        operations.set_viewport_size({"width": width, "height": 800})
        operations.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found += [f"{scheme}, {width} px: {fault}" for fault in operations.evaluate(ours, contrast)]
        if over := operations.evaluate(SIDEWAYS):
            found.append(f"at {width} px it scrolls sideways by {over}")

    assert found == []
