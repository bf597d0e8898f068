import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from pricing import keys
from pricing.models import FeedKey, HeldPrice, Merchant, Offer, PriceHistory, Wine
from tests import cast
from tests.cast import NOW
from tests.pricing.observed import make_offer, published

pytestmark = pytest.mark.django_db(transaction=True)
KEY = re.compile(r"wck_[0-9a-z]{8}_[A-Za-z0-9_-]{43}")


def staff(client, *codenames):
    charlie = cast.with_app(cast.person("charlie"))
    charlie.is_staff = True
    charlie.save()
    charlie.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(charlie)
    return client


def changelist(model):
    return reverse(f"admin:pricing_{model._meta.model_name}_changelist")


def add_key(client, merchant, **fields):
    data = {"merchant": merchant.id, "note": "", "expires_at_0": "", "expires_at_1": "", **fields}
    return client.post(reverse("admin:pricing_feedkey_add"), data, follow=True)


def test_every_list_opens_and_searches(client, merchant, wine):
    make_offer(merchant, wine)
    keys.create_key(merchant=merchant, note="", now=NOW)
    HeldPrice.objects.create(
        merchant=merchant, wine=wine, price_usd=1, last_price_usd=189, occurred_at=NOW, reason="far"
    )
    PriceHistory.objects.create(wine=wine, merchant_id=merchant.id, price_usd=1, observed_at=NOW, event_id="evt_1")
    staff(client, *[f"view_{m._meta.model_name}" for m in (Merchant, Wine, Offer, HeldPrice, PriceHistory, FeedKey)])
    for model in (Merchant, Wine, Offer, HeldPrice, PriceHistory, FeedKey):
        page = client.get(changelist(model), {"q": wine.id} if model in (Wine, Offer, PriceHistory) else {})
        assert page.status_code == 200
        assert page.context["cl"].result_count == 1, model


@pytest.mark.parametrize("model", [Offer, HeldPrice, PriceHistory])
def test_what_the_feed_writes_cannot_be_added_changed_or_deleted_by_anybody(client, merchant, wine, model):
    make_offer(merchant, wine)
    HeldPrice.objects.create(
        merchant=merchant, wine=wine, price_usd=1, last_price_usd=189, occurred_at=NOW, reason="far"
    )
    PriceHistory.objects.create(wine=wine, merchant_id=merchant.id, price_usd=1, observed_at=NOW, event_id="evt_1")
    name = model._meta.model_name
    staff(client, f"view_{name}", f"add_{name}", f"change_{name}", f"delete_{name}")
    row = model.objects.get()
    before = model.objects.values().get()
    assert client.get(reverse(f"admin:pricing_{name}_add")).status_code == 403
    assert client.post(reverse(f"admin:pricing_{name}_change", args=[row.pk]), {"price_usd": "2"}).status_code == 403
    assert client.post(reverse(f"admin:pricing_{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    assert model.objects.values().get() == before


def test_a_key_is_shown_once_when_it_is_created(client, merchant):
    staff(client, "view_feedkey", "add_feedkey")
    page = add_key(client, merchant, note="nightly")
    text = KEY.search(page.content.decode()).group()
    assert keys.authenticate(f"Bearer {text}", now=timezone.now())[0] == merchant
    key = FeedKey.objects.get()
    for address in (changelist(FeedKey), reverse("admin:pricing_feedkey_change", args=[key.pk])):
        shown = client.get(address).content.decode()
        assert key.prefix in shown
        assert text not in shown
        assert key.secret_sha256 not in shown
    assert text not in LogEntry.objects.get().get_change_message()


def test_a_third_live_key_is_a_form_error(client, merchant):
    staff(client, "view_feedkey", "add_feedkey")
    for _ in range(2):
        keys.create_key(merchant=merchant, note="", now=timezone.now())
    page = add_key(client, merchant)
    assert page.status_code == 200
    assert "2 live keys" in page.content.decode()
    assert FeedKey.objects.count() == 2


def test_a_key_that_has_expired_already_is_a_form_error(client, merchant):
    staff(client, "view_feedkey", "add_feedkey")
    page = add_key(client, merchant, expires_at_0="2026-01-01", expires_at_1="00:00:00")
    assert "That is in the past" in page.content.decode()
    assert not FeedKey.objects.exists()


def test_a_key_cannot_be_edited_or_deleted(client, merchant):
    key, _ = keys.create_key(merchant=merchant, note="before", now=timezone.now())
    staff(client, "view_feedkey", "add_feedkey", "change_feedkey", "delete_feedkey")
    change = reverse("admin:pricing_feedkey_change", args=[key.pk])
    assert client.post(change, {"merchant": merchant.id, "note": "after"}).status_code == 403
    assert client.post(reverse("admin:pricing_feedkey_delete", args=[key.pk]), {"post": "yes"}).status_code == 403
    assert FeedKey.objects.get().note == "before"


def act(client, model, action, row):
    data = {"action": action, "_selected_action": [row.pk]}
    return client.post(changelist(model), data, follow=True).content.decode()


def test_revoking_needs_its_permission_and_is_logged(client, merchant):
    key, text = keys.create_key(merchant=merchant, note="", now=timezone.now())
    act(staff(client, "view_feedkey"), FeedKey, "revoke", key)
    assert keys.authenticate(f"Bearer {text}", now=timezone.now())[0] == merchant
    act(staff(client, "view_feedkey", "change_feedkey"), FeedKey, "revoke", key)
    with pytest.raises(keys.InvalidCredentialsError):
        keys.authenticate(f"Bearer {text}", now=timezone.now())
    assert LogEntry.objects.get().get_change_message() == "Revoked."


@pytest.mark.parametrize(("action", "price", "events"), [("release", 9, 1), ("reject", 189, 0)])
def test_settling_a_held_price_needs_its_permission_and_is_logged(client, merchant, wine, action, price, events):
    make_offer(merchant, wine, "189.00")
    held = HeldPrice.objects.create(
        merchant=merchant,
        wine=wine,
        price_usd=9,
        last_price_usd=189,
        occurred_at=NOW + timedelta(hours=1),
        reason="far",
    )
    act(staff(client, "view_heldprice"), HeldPrice, action, held)
    assert (HeldPrice.objects.count(), Offer.objects.get().price_usd) == (1, 189)
    page = act(staff(client, "view_heldprice", "change_heldprice"), HeldPrice, action, held)
    assert f"{action}{'d' if action == 'release' else 'ed'}" in page
    assert (HeldPrice.objects.count(), Offer.objects.get().price_usd, len(published())) == (0, price, events)
    assert LogEntry.objects.count() == 1


def test_a_held_price_of_a_retired_wine_is_explained(client, merchant):
    wine = cast.wine(retired_at=NOW)
    held = HeldPrice.objects.create(
        merchant=merchant, wine=wine, price_usd=9, last_price_usd=189, occurred_at=NOW, reason="far"
    )
    page = act(staff(client, "view_heldprice", "change_heldprice"), HeldPrice, "release", held)
    assert "no longer listed" in page
    assert HeldPrice.objects.exists()


def test_a_merchant_keeps_its_id(client, merchant):
    staff(client, "view_merchant", "change_merchant")
    data = {"id": "mch_other", "name": "Renamed", "website": ""}
    client.post(reverse("admin:pricing_merchant_change", args=[merchant.id]), data)
    assert list(Merchant.objects.values_list("id", "name")) == [("mch_082", "Renamed")]
