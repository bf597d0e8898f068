"""Buying as its buyer sees it: the price confirmed, twice by accident, changed meanwhile; what stands on each page."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.request import urlopen

import pytest
from django.test import Client
from django.utils import timezone

from tests.cast import NOW, person, wine
from tests.pages.html import Page
from tests.purchases.cast import buy, buyer, later, state_of, stock, upkeep_now, work
from winecellar.accounts.export import export
from winecellar.accounts.models import User
from winecellar.demo.payments_api import PaymentServer
from winecellar.demo.payments_script import PaymentScript
from winecellar.purchases import services
from winecellar.purchases.models import Card, Purchase, StockItem
from winecellar.purchases.rules import Event, State

pytestmark = pytest.mark.django_db(transaction=True)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def read(answer: Any, status: int = 200) -> Page:
    assert answer.status_code == status
    page = Page(answer.content.decode())
    assert page.faults == []
    return page


def form_of(page: Page, quantity: int = 1) -> dict[str, Any]:
    """As the browser would send it."""
    hidden = {each["name"]: each["value"] for each in page.all("input") if each.get("type") == "hidden"}
    return {**{name: hidden[name] for name in ("unit_price", "currency", "token")}, "quantity": quantity}


def test_the_wines_page_says_what_can_be_bought_and_leads_there(provider: PaymentServer, settings: Any) -> None:
    item = stock(3)
    page = read(Client().get("/wines/wn_4417"))
    assert "Merchant X 3 bottles left $154.00 Buy from Merchant X" in page.words
    assert f"/buy/{item.pk}" in [a.get("href") for a in page.all("a")]
    assert Client().get(f"/buy/{item.pk}").status_code == 302, "who is not signed in signs in first"
    settings.PAYMENTS = None
    assert "Buy" not in read(Client().get("/wines/wn_4417")).words, "without a provider nothing is sold"


def test_the_price_is_confirmed_and_the_purchase_shown_until_its_end(provider: PaymentServer) -> None:
    item = stock(12)
    client = signed_in(buyer(provider))
    page = read(client.get(f"/buy/{item.pk}"))
    assert "3 bottles: $462.00" in page.words
    assert "charged to Visa ending in 4242 at once" in page.words
    answer = client.post(f"/buy/{item.pk}", form_of(page, 3))
    purchase = Purchase.objects.get()
    assert answer.headers["Location"] == f"/purchases/{purchase.pk}"
    shown = read(client.get(f"/purchases/{purchase.pk}")).words
    assert "Payment under way" in shown
    assert f"Reserved until today {purchase.reserved_until:%H:%M} UTC" in shown.replace("\u00a0", " ")
    work()
    shown = read(client.get(f"/purchases/{purchase.pk}")).words
    assert "Receipt" in shown and purchase.reference in shown and "Charge today" in shown and "$462.00" in shown
    assert "The bottles are yours and paid" in shown
    assert "Bought" in read(client.get("/purchases")).words


def test_a_double_click_and_the_back_button_buy_once(provider: PaymentServer) -> None:
    item = stock(12)
    client = signed_in(buyer(provider))
    form = form_of(read(client.get(f"/buy/{item.pk}")))
    first, second = client.post(f"/buy/{item.pk}", form), client.post(f"/buy/{item.pk}", form)
    work()
    third = client.post(f"/buy/{item.pk}", {**form, "quantity": 5})  # back, chosen anew, sent again
    assert first.headers["Location"] == second.headers["Location"] == third.headers["Location"]
    assert Purchase.objects.count() == 1


def test_a_price_that_changed_meanwhile_is_shown_beside_the_one_confirmed(provider: PaymentServer) -> None:
    item = stock(12, "154.00")
    client = signed_in(buyer(provider))
    form = form_of(read(client.get(f"/buy/{item.pk}")), 2)
    stock(12, "171.00")
    page = read(client.post(f"/buy/{item.pk}", form))
    assert "You confirmed $154.00 Now $171.00" in page.words
    assert not Purchase.objects.exists()
    again = form_of(page, 2)
    assert (again["unit_price"], again["token"] != form["token"]) == ("171.00", True)
    client.post(f"/buy/{item.pk}", again)
    assert Purchase.objects.get().amount == Decimal("342.00")


SPOILT = [
    {"unit_price": "0.01"},
    {"unit_price": "NaN"},
    {"unit_price": "1e400"},
    {"currency": "usd"},
    {"token": "x"},
    {"token": ""},
    {"quantity": "0"},
    {"quantity": "-1"},
    {"quantity": "99999999999999999999"},
    {"quantity": "१"},
    {"quantity": "\x00"},
]


def test_a_form_that_was_tampered_with_buys_nothing_and_is_no_500(provider: PaymentServer) -> None:
    item = stock(12)
    client = signed_in(buyer(provider))
    for spoilt in SPOILT:
        form = {**form_of(read(client.get(f"/buy/{item.pk}"))), **spoilt}
        assert "Nothing was bought." in read(client.post(f"/buy/{item.pk}", form)).words, spoilt
        assert not Purchase.objects.exists(), spoilt


def test_who_is_too_late_who_has_no_card_and_whose_address_is_not_confirmed_is_told_so(provider: PaymentServer) -> None:
    item = stock(1)
    slow = signed_in(buyer(provider, "bob"))
    form = form_of(read(slow.get(f"/buy/{item.pk}")))
    buy(buyer(provider), item)
    assert "All bottles are sold or reserved now." in read(slow.post(f"/buy/{item.pk}", form)).words
    stock(5)
    assert "First, a card" in read(signed_in(person("charlie")).get(f"/buy/{item.pk}")).words
    assert "Confirm your address first" in read(signed_in(person("d", confirmed=False)).get(f"/buy/{item.pk}")).words
    assert slow.get("/buy/999999").status_code == 404


def test_anothers_purchase_is_a_404_and_asks_who_a_stranger_is(provider: PaymentServer) -> None:
    purchase = buy(buyer(provider), stock(1))
    assert signed_in(person("bob")).get(f"/purchases/{purchase.pk}").status_code == 404
    assert Client().get(f"/purchases/{purchase.pk}").status_code == 302
    assert signed_in(person("bob")).get("/purchases?before=x").status_code == 200


def test_every_state_has_a_page_that_says_what_is_true_and_what_is_next(provider: PaymentServer) -> None:
    from winecellar.purchases.words import SAYS

    user = buyer(provider)
    purchase = buy(user, stock(1))
    client = signed_in(user)
    for state in State:
        Purchase.objects.update(state=state)
        assert SAYS[state].split(".")[0] in read(client.get(f"/purchases/{purchase.pk}")).words
        read(client.get("/purchases"))


def test_charge_and_refund_are_both_shown_with_what_stays_of_them(provider: PaymentServer) -> None:
    provider.script = PaymentScript("confirm: taken-reset")
    user = buyer(provider)
    purchase = buy(user, stock(1))
    work()
    services.intervene(purchase_id=purchase.pk, event=Event.COMPENSATE, by="1", note="n", now=timezone.now())
    work(waits=True)
    shown = read(signed_in(user).get(f"/purchases/{purchase.pk}")).words
    assert "Refunded" in shown
    assert re.search(r"On your statement .* Charge .* \$154\.00 Refund .* −\$154\.00", shown)
    assert "both stay on your statement" in shown and "5 to 10 business days" in shown


def test_a_card_is_given_on_the_providers_page_and_can_be_removed(provider: PaymentServer, settings: Any) -> None:
    user, item = person(), stock(1)
    client = signed_in(user)
    answer = client.post("/purchases/card", {"next": f"/buy/{item.pk}"})
    (address,) = re.findall(r'href="(http://127\.0\.0\.1:\d+/pay/\w+)"', answer.content.decode())
    assert "number never comes to us" in answer.content.decode()
    assert client.get("/purchases/card/back").status_code == 302, "who turns back has no card"
    assert not Card.objects.exclude(method_id="").exists()
    # The provider's page, as a browser uses it.
    assert b"A card that works" in urlopen(address).read()
    import http.client
    from urllib.parse import urlsplit

    there = http.client.HTTPConnection(urlsplit(address).netloc)
    there.request("POST", urlsplit(address).path, "card=4242", {"Content-Type": "application/x-www-form-urlencoded"})
    back = there.getresponse().headers["Location"]
    assert back.startswith(f"{settings.SITE_URL}/purchases/card/back?session_id=")
    assert client.get(back.removeprefix(settings.SITE_URL)).headers["Location"] == f"/buy/{item.pk}"
    assert Card.objects.get(user=user).label == "Visa ending in 4242"
    # Somebody else's link gives nobody a card of another's.
    bob = signed_in(person("bob"))
    bob.post("/purchases/card")
    bob.get(back.removeprefix(settings.SITE_URL))
    assert Card.objects.get(user=person("bob")).method_id == ""
    purchase = buy(user, item)
    client.post("/purchases/card/remove")
    assert Card.objects.get(user=user).method_id == ""
    work()
    assert state_of(purchase) is State.COMPLETED, "what is under way goes on"


def test_a_provider_that_is_away_is_a_sentence_and_no_500(provider: PaymentServer) -> None:
    provider.script = PaymentScript("card: 503*2")
    client = signed_in(person())
    for ask in (lambda: client.post("/purchases/card"), lambda: client.get("/purchases/card/back?session_id=cs_1")):
        assert ask().status_code == 302
        assert "does not answer now" in read(client.get("/purchases")).words
    assert client.get("/purchases/card/back?session_id=cs_1/../x").status_code == 302
    assert client.post("/purchases/card", {"next": "https://elsewhere.example/"}).status_code == 200
    assert "elsewhere" not in client.get("/purchases/card/back").headers["Location"]


def test_the_pages_make_a_fixed_number_of_queries(provider: PaymentServer, django_assert_num_queries: Any) -> None:
    user = buyer(provider)
    for number in range(3):
        purchase = buy(user, stock(12, number=str(number + 1)))
        work()
    client = signed_in(user)
    item = StockItem.objects.first()
    assert item is not None
    with django_assert_num_queries(2 + 1 + 4):  # session, who it is; what is unread; the purchase, log, money, mails
        client.get(f"/purchases/{purchase.pk}")
    with django_assert_num_queries(2 + 1 + 2):  # theirs, and the card
        client.get("/purchases")
    with django_assert_num_queries(2 + 1 + 3):  # the stock, the card, whether their address is confirmed
        client.get(f"/buy/{item.pk}")


def test_the_export_has_purchases_with_their_log_and_nothing_lets_its_reader_in(provider: PaymentServer) -> None:
    user = buyer(provider)
    purchase = buy(user, stock(1))
    buy(buyer(provider, "bob"), stock(3))
    work()
    document = json.loads("".join(export(person=user, now=NOW)))
    (row,) = document["purchases"]
    assert (row["reference"], row["amount"], row["state"]) == (purchase.reference, "154.00", "completed")
    assert {entry["purchase"] for entry in document["entries"]} == {purchase.pk}
    assert [money["kind"] for money in document["money"]] == ["charge"]
    assert [card["label"] for card in document["cards"]] == ["Visa ending in 4242"]


def test_a_person_who_left_is_named_nowhere_and_the_books_stay(provider: PaymentServer) -> None:
    from winecellar.accounts.services import erase

    user = buyer(provider)
    purchase = buy(user, stock(1))
    work()
    erase(user=user)
    purchase.refresh_from_db()
    assert (purchase.buyer, purchase.state) == (None, State.COMPLETED)
    assert not Card.objects.exists()
    assert wine().pk == purchase.item.wine_id


def test_what_took_too_long_says_so(provider: PaymentServer, settings: Any) -> None:
    settings.PAYMENT_TIMEOUT = timedelta(seconds=0.3)
    provider.script = PaymentScript("confirm: hang:0.6")
    user = buyer(provider)
    purchase = buy(user, stock(1))
    work()
    later(purchase, minutes=1)
    upkeep_now()
    shown = read(signed_in(user).get(f"/purchases/{purchase.pk}")).words
    assert "Payment being cleared up" in shown
    assert "you get all of it back" in shown
