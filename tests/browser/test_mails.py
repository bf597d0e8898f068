"""The mails on a phone: whatever is in a name, an address or a reference, no mail is wider than its screen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Literal

import pytest
from django.core.mail import EmailMultiAlternatives
from playwright.sync_api import Browser

from alerts import mail as alert_mail
from alerts.digest import facts
from alerts.digest import mail as digest_mail
from alerts.digest.models import Digest
from alerts.models import Alert, Notification
from pricing.models import Wine
from winecellar.accounts import letters
from winecellar.accounts.models import User
from winecellar.purchases import mail as purchase_mail
from winecellar.purchases.rules import State

LONG = "Trockenbeerenausleserieslingscheurebe" * 3  # of more letters than a line has, and no place to break
RICH = Decimal("9999999.99")
LINES = "label => { const all = new Range(); all.selectNodeContents(label); return all.getClientRects().length }"
ALICE = User(pk=1, email=f"{'alice' * 10}@{'cellar' * 8}.example", name=LONG)


def html_of(mail: EmailMultiAlternatives | None) -> str:
    assert mail is not None
    ((html, kind),) = ((str(part[0]), part[1]) for part in mail.alternatives)
    assert kind == "text/html"
    return html


def alert() -> str:
    wine = Wine(pk="wn_1", name=LONG, producer=LONG, region=LONG, country="DE", vintage=2016)
    watch = Alert(pk=1, user=ALICE, wine=wine, target=RICH, currency="USD", name=LONG)
    told = Notification(
        pk=1,
        alert=watch,
        event_id="evt_1",
        currency="USD",
        old_price=RICH * 2,
        new_price=RICH - 1,
        target=RICH,
        merchant_name=LONG,
        occurred_at=datetime(2026, 3, 14, 9, 13, tzinfo=UTC),
    )
    return html_of(alert_mail.compose(told))


def digest() -> str:
    week = facts.Week(
        drops=[facts.Drop("wn_1", LONG, RICH, RICH - 1, LONG)],
        drop_count=2,
        fired=[facts.Fired(1, LONG, "JPY", RICH, RICH, LONG)],
        fired_count=2,
        close=[facts.Close(1, LONG, "EUR", RICH, RICH - 1)],
        cellar=facts.Cellar("USD", RICH * 100, RICH),
    )
    return html_of(digest_mail.compose(Digest(pk=1, user=ALICE, monday=date(2026, 3, 16), facts=facts.kept(week))))


def purchase(kind: str, state: State) -> str:
    told = purchase_mail.Told(
        id=1,
        kind=kind,
        purchase=1,
        reference="pur_06h2va5acm00gm3a33t4emjt9n",
        state=state.value,
        merchant_name=LONG,
        wine_name=LONG,
        quantity=12,
        unit_price=RICH,
        amount=RICH * 12,
        currency="USD",
        card_label=LONG,
        buyer=ALICE.email,
        buyer_name=LONG,
        seller="orders@merchant.example",
    )
    return html_of(purchase_mail.compose(told))


MAILS: dict[str, Callable[[], str]] = {
    "alert": alert,
    "digest": digest,
    "bought": lambda: purchase("bought", State.COMPLETED),
    "sold": lambda: purchase("sold", State.COMPLETED),
    "refunded": lambda: purchase("refunded", State.REFUNDED),
    "letter": lambda: letters.write("account/email/password_reset_key", {"password_reset_url": f"https://{LONG}"}).html,
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", MAILS)
def test_a_mail_fits_a_phone_whatever_it_tells_of(
    browser: Browser, name: str, scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_page(viewport={"width": 320, "height": 900}, color_scheme=scheme)
    try:
        page.set_content(MAILS[name]())
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        # What is said beside a value stays one piece, however long the value is.
        for label in page.locator("td.soft").all():
            assert label.evaluate(LINES) == 1
    finally:
        page.close()
