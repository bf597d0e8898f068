"""The whole journey of somebody new, in a browser, with script and without: from signing up to an alert's end."""

from __future__ import annotations

import secrets
from decimal import Decimal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.site import Site
from tests.processes.conftest import wait_until

PASSWORD = "bottles-under-the-stairs"
# Nobody else's alerts or prices meet these in this run.
WINES = {True: ("wn_4406", "mch_082"), False: ("wn_4408", "mch_082")}


class Person:
    """Somebody with a browser and a mailbox."""

    def __init__(self, page: Page, site: Site, name: str) -> None:
        self.page, self.site = page, site
        self.address = f"{name}@mailbox.example"
        self.mails = 0

    def sees(self, text: str) -> None:
        expect(self.page.locator("main")).to_contain_text(text)

    def clicks(self, name: str, *, exact: bool = True) -> None:
        """A button or a link of the page's content; the page that it leads to is there afterwards."""
        main = self.page.locator("main")
        link, button = (main.get_by_role(role, name=name, exact=exact) for role in ("link", "button"))
        with self.page.expect_navigation():
            button.or_(link).first.click()

    def opens_next_mail(self) -> None:
        """The mail that comes next, in a mail reader."""
        self.mails += 1
        mail = self.site.wait_for_mail(self.address, self.mails)
        self.page.goto(f"{self.site.mail_address}/mail/{mail.number}")

    def opens_mail_again(self) -> None:
        self.mails -= 1
        self.opens_next_mail()

    def follows(self, part: str) -> None:
        """The link of the open mail whose address has this in it."""
        address = self.page.locator(f"pre a[href*='{part}']").first.get_attribute("href")
        assert address is not None
        self.page.goto(address)

    def reloads_until(self, text: str) -> None:
        def there() -> bool:
            self.page.reload()
            return text in self.page.locator("main").inner_text()

        wait_until(there, seconds=60, what=f"“{text}” on {self.page.url}")


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_from_signing_up_to_the_end_of_an_alert(visit: Visit, site: Site, script: bool) -> None:
    wine_id, merchant_id = WINES[script]
    before = site.price_now(wine_id, merchant_id)
    target = (before * Decimal("0.8")).quantize(Decimal(1))
    me = Person(visit(java_script_enabled=script), site, f"nora-{secrets.token_hex(3)}")

    # A stranger tries to watch a wine, and is asked who they are.
    me.page.goto(f"/wines/{wine_id}")
    me.page.get_by_label("Target").fill(str(target))
    me.clicks("Sign in and watch")
    me.clicks("Sign up")
    me.page.get_by_label("Email").fill(me.address)
    me.page.locator("input[type=password]").fill(PASSWORD)
    me.clicks("Sign up")
    me.sees("mail")

    # The mail's link asks before it confirms; then they are signed in.
    me.opens_next_mail()
    me.follows("/confirm-address/")
    me.sees(me.address)
    me.clicks("Yes, confirm it")

    # Watching the wine: first it is compared, then it waits.
    me.page.goto(f"/wines/{wine_id}")
    me.page.get_by_label("Target").fill(str(target))
    me.clicks("Tell me")
    me.page.wait_for_url("**/alerts/*")
    alert = me.page.url.partition("#")[0]
    me.reloads_until("The price is above your target.")

    # The merchant sends a price that meets it, and a mail comes, which leads back here.
    dropped = target - Decimal("1.50")
    site.merchant_sends(merchant_id, wine_id, dropped)
    me.opens_next_mail()
    expect(me.page.locator("h1")).to_contain_text(f"${dropped}")
    me.follows("/alerts/")
    assert me.page.url == alert
    me.sees(f"${dropped}")
    me.sees("Mail")

    # The link at its end: nothing until the button is pressed, and that can be undone.
    me.opens_mail_again()
    me.follows("/unsubscribe/")
    me.sees("Nothing changes until you press the button")
    me.clicks("Send no more mail about", exact=False)
    me.sees("It is paused: we send no more mail about it.")
    me.clicks("Undo")
    me.sees("It is on again.")
    me.page.goto(alert)

    # No more mail until it rises; then a pause; then another target.
    me.clicks("until it rises")
    me.sees("No further mail until the price has risen")
    me.clicks("Pause")
    me.sees("It is paused")
    me.clicks("Change what it waits for")
    me.page.get_by_label("Target").fill("12.34")
    me.clicks("Save")
    me.sees("$12.34")
    me.clicks("Resume")
    me.reloads_until("The price is above your target.")
    me.page.goto("/alerts")
    me.sees("$12.34")

    # Deleted, brought back, and deleted again.
    me.page.goto(alert)
    me.clicks("Delete")
    me.page.wait_for_url("**/alerts")
    expect(me.page.locator("main")).not_to_contain_text("$12.34")
    me.clicks("Undo")
    me.sees("$12.34")
    me.page.goto(alert)
    me.clicks("Delete")
    expect(me.page.locator("main")).not_to_contain_text("$12.34")
    assert site.mails_to(me.address)[me.mails :] == [], "no other mail came"
