"""What merchants sent is kept for a while, without secrets, and can be read again by the adapters as they are now."""

import json
from datetime import timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from jobs.models import JobRun
from pricing import raw_bodies, signing
from pricing.feeds import shopify
from pricing.feeds.errors import FeedError
from pricing.feeds.readapt import BodyCutError, readapt
from pricing.feeds.shops import UnknownTopicError
from pricing.models import FeedAnswer, HeldPrice, Offer, RawBody
from pricing.rules import Observation
from tests.cast import NOW, with_app
from tests.feeds.conftest import observation
from tests.feeds.shops import SECRET, send, shopify_product, shopify_variant, woo_product
from tests.pricing.observed import load_rates, published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(merchant, wine):
    type(merchant).objects.update(currency="EUR")
    for kind in ("shopify", "woocommerce"):
        signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=SECRET, kind=kind)


def test_a_body_is_kept_byte_for_byte_and_named_by_its_event(feed, wine):
    body = json.dumps(observation("154.00"), indent=3).encode()
    feed.post(body)
    raw = RawBody.objects.get()
    assert (bytes(raw.body), raw.size, raw.source, raw.merchant_id) == (body, len(body), "price-changes", "mch_082")
    assert published()[0]["attributes"]["raw_body"] == str(raw.pk)


def test_also_by_the_price_that_is_held(feed, wine):
    feed.post(observation(currency="EUR"))
    assert HeldPrice.objects.get().attributes["raw_body"] == str(RawBody.objects.get().pk)


def test_a_request_that_came_before_is_not_kept_twice(feed, wine):
    for _ in range(3):
        assert feed.post(observation(), Idempotency_Key="i-1").status_code == 202
    assert RawBody.objects.count() == FeedAnswer.objects.count() == 1


@pytest.mark.parametrize(
    "bad", [b"{", json.dumps(observation("0")).encode(), json.dumps(observation(wine_id="wn_9")).encode()]
)
def test_what_the_canonical_feed_refuses_is_not_kept(feed, wine, bad):
    assert feed.post(bad).status_code >= 400
    assert not RawBody.objects.exists()


def test_of_the_headers_only_what_says_what_the_body_is(feed, wine, shop):
    feed.post(observation(), Idempotency_Key="i-1", Cookie="session=x", X_Api_Key="x")
    kept = RawBody.objects.get().headers
    assert kept["content-type"] == "application/json"
    assert kept["idempotency-key"] == "i-1"
    assert not {"authorization", "cookie", "x-api-key"} & kept.keys()
    send("shopify", shopify_product(), {"X-Shopify-Access-Token": "x"})
    kept = RawBody.objects.latest("id").headers
    assert kept["x-shopify-topic"] == "products/update"
    assert not {"x-shopify-hmac-sha256", "x-shopify-access-token"} & kept.keys()
    send("woocommerce", woo_product(), {})
    assert "x-wc-webhook-signature" not in RawBody.objects.latest("id").headers


def test_a_long_body_is_cut_and_says_so(feed, wine, settings):
    settings.FEED_RAW_BODY_BYTES = 50
    feed.post(observation())
    raw = RawBody.objects.get()
    assert len(raw.body) == 50 < raw.size
    with pytest.raises(BodyCutError, match="Only 50 of its"):
        readapt(raw.pk)


def test_past_their_time_they_go_and_younger_ones_stay(feed, wine, settings, monkeypatch):
    for price in ("150.00", "151.00", "152.00"):
        feed.post(observation(price))
    old = RawBody.objects.order_by("id")[:2]
    late = timezone.now() - settings.FEED_RAW_BODY_RETENTION - timedelta(seconds=1)
    RawBody.objects.filter(pk__in=[raw.pk for raw in old]).update(received_at=late)
    monkeypatch.setattr(raw_bodies, "ROWS_AT_ONCE", 1)
    call_command("run_job", "raw-bodies", stdout=StringIO(), stderr=StringIO())
    assert JobRun.objects.get(job="raw-bodies").counts == {"raw bodies removed": 2}
    assert RawBody.objects.count() == 1
    assert Offer.objects.exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"key": "wck_1a2b3c4d_Ab-_9"}', '{"key": "wck_1a2b3c4d_••••"}'),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw==", "whsec_••••"),
        ('{"api_key" : "a\\"b", "price": "1"}', '{"api_key" : "••••", "price": "1"}'),
        ('{"Shop-Password":"x"}', '{"Shop-Password":"••••"}'),
        ('{"price": "154.00"}', '{"price": "154.00"}'),
    ],
)
def test_what_looks_like_a_secret_is_masked(text, shown):
    assert raw_bodies.masked(text) == shown


def test_the_admin_shows_a_body_with_its_secrets_masked_and_lets_nobody_change_it(feed, wine):
    feed.post(json.dumps({**observation(), "my_password": "opensesame"}).encode())
    boss = with_app(get_user_model().objects.create_superuser("boss@winecellar.example", "x", name="Boss"))
    client = Client()
    client.force_login(boss)
    path = f"/admin/pricing/rawbody/{RawBody.objects.get().pk}/change/"
    page = client.get(path).content.decode()
    assert "wn_4417" in page
    assert "opensesame" not in page
    assert "••••" in page
    assert client.post(path, {"source": "x"}).status_code == 403
    assert client.get("/admin/pricing/rawbody/").status_code == 200


# --- Reading again ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", json.dumps(observation("154.00"))),
        ("application/json; charset=utf-8", json.dumps({"observations": [observation("154.00")]})),
        ("application/x-ndjson", json.dumps(observation("154.00")) + "\n"),
        (
            "application/cloudevents+json",
            json.dumps({"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": observation("154.00")}),
        ),
    ],
)
def test_a_body_of_any_form_is_read_again(feed, wine, content_type, body):
    assert feed.post(body.encode(), content_type=content_type).status_code == 202
    found = readapt(RawBody.objects.get().pk)
    assert found.observations == [Observation(wine.pk, Decimal("154.00"), NOW)]
    assert len(published()) == 1  # it only reads


def test_the_clock_is_that_of_the_day_it_came(feed, wine):
    feed.post(observation())
    RawBody.objects.update(received_at=NOW - timedelta(days=1))  # then its time lies ahead
    with pytest.raises(FeedError, match="time_out_of_range"):
        readapt(RawBody.objects.get().pk)


def test_a_webhook_is_read_again_with_the_listings_as_they_are_now(shop):
    load_rates("2026-03-13", USD="1.10")
    send("shopify", shopify_product(shopify_variant(11), shopify_variant(12, "1.00", "Case of 6")), {})
    found = readapt(RawBody.objects.get().pk)
    assert [ask.source_id for ask in found.brought.asks] == ["shopify/7/11", "shopify/7/12"]
    assert found.observations == [Observation.of("wn_4417", Decimal("189.00"), "EUR", NOW.replace(microsecond=877041))]


def test_a_mended_adapter_reads_what_nobody_could(shop, monkeypatch):
    """A shop that writes its prices with a comma: a dead letter, until somebody teaches the adapter."""
    product = shopify_product(shopify_variant(price="189,00"))
    assert "unreadable" in send("shopify", product, {}).json()
    raw = RawBody.objects.get()
    with pytest.raises(FeedError, match="invalid_price"):
        readapt(raw.pk)
    price = shopify.shops.price
    monkeypatch.setattr(shopify.shops, "price", lambda value, *where: price(value.replace(",", "."), *where))
    [ask] = readapt(raw.pk).brought.asks
    assert ask.price == Decimal("189.00")


def test_what_is_about_something_else_is_said_to_be_so(shop):
    send("shopify", shopify_product(), {})
    RawBody.objects.update(headers={"x-shopify-topic": "orders/create"})
    with pytest.raises(UnknownTopicError):
        readapt(RawBody.objects.get().pk)
    with pytest.raises(RawBody.DoesNotExist):
        readapt(0)
