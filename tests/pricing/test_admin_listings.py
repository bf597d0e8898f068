"""The admin page where listings wait."""

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from pricing.models import Listing, Offer, Wine
from tests import cast
from tests.pricing.observed import published
from tests.pricing.test_admin import act, changelist, staff
from tests.pricing.test_listings import VAGUE, ask, take

pytestmark = pytest.mark.django_db(transaction=True)


def page(listing):
    return reverse("admin:pricing_listing_change", args=[listing.pk])


@pytest.fixture
def listing(merchant, wine):
    take(merchant, ask(VAGUE, "180.00"))
    return Listing.objects.get()


def test_what_waits_can_be_listed_alone(client, merchant, listing):
    take(merchant, ask(id_="v2", price="170.00"))
    staff(client, "view_listing")
    counts = {
        state: client.get(changelist(Listing), {"state": state} if state else {}).context["cl"].result_count
        for state in ("", "waiting", "matched", "aside")
    }
    assert counts == {"": 2, "waiting": 1, "matched": 1, "aside": 0}


def test_the_page_shows_what_it_says_and_suggests_wines(client, wine, listing):
    staff(client, "view_listing", "change_listing")
    shown = client.get(page(listing)).content.decode()
    assert VAGUE in shown
    assert "180.00" in shown
    assert f'value="{wine.pk}"' in shown
    assert "Ch. Montrose 2016, Château Montrose, 750 ml" in shown


@pytest.mark.parametrize("field", ["suggestion", "other"])
def test_a_chosen_wine_is_matched_and_its_price_recorded(client, wine, listing, field):
    staff(client, "view_listing", "change_listing")
    answer = client.post(page(listing), {field: wine.pk}, follow=True).content.decode()
    assert "is Ch. Montrose 2016 from now on; its price is applied." in answer
    assert str(Offer.objects.get().price_usd) == "180.00"
    assert Listing.objects.get().matched_by == "person"
    assert published()[0]["attributes"]["matched_by"] == str(cast.person("charlie").pk)
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({}, "Choose one wine"),
        ({"suggestion": "wn_4417", "other": "wn_4418"}, "Choose one wine"),
        ({"other": "wn_1"}, "do not list that wine"),
        ({"other": "wn_4418"}, "1500 ml"),
        ({"suggestion": "wn_4418"}, "not one of the available choices"),
    ],
)
def test_a_choice_that_cannot_be_is_explained_on_the_page(client, listing, data, complaint):
    cast.wine("4418", size_ml=1500)
    staff(client, "view_listing", "change_listing")
    assert complaint in client.post(page(listing), data).content.decode()
    assert Listing.objects.get().wine is None
    assert published() == []


def test_who_may_only_look_cannot_match_or_set_aside(client, wine, listing):
    staff(client, "view_listing")
    assert client.get(page(listing)).status_code == 200
    assert client.post(page(listing), {"other": wine.pk}).status_code == 403
    act(client, Listing, "set_aside", listing)
    assert Listing.objects.filter(wine__isnull=True, set_aside_at__isnull=True).exists()


def test_nobody_adds_deletes_or_edits_what_a_merchant_says(client, wine, listing):
    staff(client, "view_listing", "add_listing", "change_listing", "delete_listing")
    assert client.get(reverse("admin:pricing_listing_add")).status_code == 403
    assert client.post(reverse("admin:pricing_listing_delete", args=[listing.pk]), {"post": "yes"}).status_code == 403
    client.post(page(listing), {"other": wine.pk, "title": "Krug", "price": "1.00"})
    assert (Listing.objects.get().title, str(Listing.objects.get().price)) == (VAGUE, "180.00")


def test_a_listing_is_set_aside_and_that_is_logged(client, listing):
    staff(client, "view_listing", "change_listing")
    assert "set aside." in act(client, Listing, "set_aside", listing)
    assert Listing.objects.get().set_aside_at
    assert LogEntry.objects.get().get_change_message() == "Set aside."
    assert "does not wait" in act(client, Listing, "set_aside", listing)


def test_a_wines_numbers_are_taken_as_people_write_them(client, wine):
    staff(client, "view_wine", "change_wine")
    address = reverse("admin:pricing_wine_change", args=[wine.pk])
    facts = {name: getattr(wine, name) for name in ("name", "producer", "vintage", "size_ml", "colour", "country")}
    assert "check digit" in client.post(address, {**facts, "gtin": "4006381333932"}).content.decode()
    assert "7, 11, 16 or 18" in client.post(address, {**facts, "lwin": "12"}).content.decode()
    client.post(address, {**facts, "gtin": "4 006381 333931", "lwin": "LWIN10123612016"})
    changed = Wine.objects.get()
    assert (changed.gtin, changed.lwin) == ("04006381333931", "1012361")
