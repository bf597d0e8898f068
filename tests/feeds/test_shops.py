"""Webhooks of Shopify and WooCommerce: signed, taken once, and recorded or kept with their listings."""

import json
import logging
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from pricing import holds, signing
from pricing.models import FeedAnswer, Listing, Offer
from tests import cast
from tests.cast import NOW
from tests.feeds.conftest import nothing_written, refusal, unreadable
from tests.feeds.shops import SECRET, send, shopify_product, shopify_variant, signature, woo_product
from tests.pricing.observed import load_rates, published

pytestmark = pytest.mark.django_db(transaction=True)
SYSTEMS = ["shopify", "woocommerce"]
SIGNED = {"shopify": "X-Shopify-Hmac-Sha256", "woocommerce": "X-WC-Webhook-Signature"}
TOPIC = {"shopify": "X-Shopify-Topic", "woocommerce": "X-WC-Webhook-Topic"}
DELIVERY = {"shopify": "X-Shopify-Webhook-Id", "woocommerce": "X-WC-Webhook-Delivery-ID"}
PRODUCT = {"shopify": shopify_product(), "woocommerce": woo_product()}


@pytest.fixture(autouse=True)
def _secrets(merchant, wine):
    type(merchant).objects.update(currency="USD")
    for kind in SYSTEMS:
        signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=SECRET, kind=kind)


def shopify(document=None, **headers):
    return send("shopify", shopify_product() if document is None else document, headers)


def woo(document=None, **headers):
    return send("woocommerce", woo_product() if document is None else document, headers)


def prices():
    return {offer.wine_id: str(offer.price_usd) for offer in Offer.objects.all()}


def kept():
    """Why what was answered last was kept, by listing."""
    return {listing.source_id: (listing.wine_id, listing.price) for listing in Listing.objects.all()}


# --- Both systems -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_signed_product_is_recorded(system):
    response = send(system, PRODUCT[system], {})
    assert response.status_code == 202, response.content
    answer = response.json()
    [message] = published()
    assert answer["event_ids"] == [message["event_id"]]
    assert answer["results"][0]["applied"] is True
    assert prices() == {"wn_4417": "189.00"}
    assert Offer.objects.get().occurred_at.replace(microsecond=0) == NOW
    assert message["attributes"]["listing"] == answer["results"][0]["listing"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_same_webhook_again_is_a_duplicate(system):
    answers = [send(system, PRODUCT[system], {}).json() for _ in range(3)]
    assert [answer["duplicate"] for answer in answers] == [False, True, True]
    assert answers[0]["event_ids"] == answers[2]["event_ids"]
    assert len(published()) == FeedAnswer.objects.count() == 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_another_delivery_of_the_same_price_makes_no_event(system):
    send(system, PRODUCT[system], {})
    answer = send(system, PRODUCT[system], {DELIVERY[system]: "another"}).json()
    assert (answer["duplicate"], answer["results"][0]["reason"]) == (False, "unchanged")
    assert len(published()) == 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_one_delivery_id_with_another_body_is_another_delivery(system):
    """WooCommerce's ids are the same for all that a webhook sends within a second."""
    send(system, PRODUCT[system], {})
    other = {"shopify": shopify_product(id=8), "woocommerce": woo_product(id=795)}[system]
    assert send(system, other, {}).json()["duplicate"] is False
    assert Listing.objects.count() == FeedAnswer.objects.count() == 2


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("wrong", ["AAAA", "é", "x" * 5000, signature(b"another body")])
def test_a_wrong_signature_is_a_401_like_an_unknown_merchants(system, wrong):
    responses = [
        send(system, PRODUCT[system], {SIGNED[system]: wrong}),
        send(system, PRODUCT[system], {}, merchant="mch_nobody"),
    ]
    for response in responses:
        assert refusal(response) == (401, "invalid_credentials", None)
        assert "WWW-Authenticate" in response
    assert responses[0].json()["error"]["message"] == responses[1].json()["error"]["message"]
    assert nothing_written()


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_a_signature_it_is_a_401(system):
    assert refusal(send(system, PRODUCT[system], {SIGNED[system]: None})) == (401, "missing_credentials", None)
    assert nothing_written()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_signature_is_over_the_bytes_that_were_sent(system):
    body = json.dumps(PRODUCT[system], indent=1).encode()
    assert send(system, body, {}).status_code == 202
    again = signature(json.dumps(PRODUCT[system]).encode())
    assert send(system, body, {SIGNED[system]: again}).status_code == 401


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_secret_is_good_for_its_system_and_merchant_alone(merchant, system):
    other = next(each for each in SYSTEMS if each != system)
    merchant.signing_secrets.filter(kind=system).update(kind="standard")
    assert send(system, PRODUCT[system], {}).status_code == 401
    assert send(other, PRODUCT[other], {}).status_code == 202
    cast.merchant("083", "Merchant Y")
    assert send(other, PRODUCT[other], {}, merchant="mch_083").status_code == 401


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_second_secret_works_while_it_is_replaced_and_a_third_is_refused(merchant, system):
    second = "another secret of some length"
    signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=second, kind=system)
    body = json.dumps(PRODUCT[system]).encode()
    assert send(system, body, {}).status_code == 202
    assert send(system, body, {SIGNED[system]: signature(body, second)}).status_code == 202
    with pytest.raises(signing.keys.TooManyKeysError):
        signing.create_secret(merchant=merchant, note="", now=timezone.now(), kind=system)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_envelope_is_checked_as_everywhere(system, settings):
    client = Client()
    assert refusal(client.get(f"/feeds/v1/{system}/mch_082"))[:2] == (405, "method_not_allowed")
    settings.FEED_MAX_BODY_BYTES = 50
    assert refusal(send(system, PRODUCT[system], {}))[0] == 413
    assert nothing_written()


@pytest.mark.parametrize("system", SYSTEMS)
def test_prices_without_the_merchants_currency_are_kept_and_not_taken_for_dollars(merchant, system):
    type(merchant).objects.update(currency="")
    answer = send(system, PRODUCT[system], {}).json()
    assert answer["results"][0]["reason"] == "no currency"
    assert (Listing.objects.get().currency, Listing.objects.get().price) == ("", 189)
    assert published() == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_prices_of_a_shop_in_other_money_are_converted(merchant, system):
    type(merchant).objects.update(currency="EUR")
    held = send(system, PRODUCT[system], {}).json()["results"][0]
    assert (held["applied"], held["reason"], held["held"]) == (False, "held", "no rate")
    load_rates("2026-03-13", USD="1.10")
    assert holds.release_convertible(now=timezone.now()) == 1
    offer = Offer.objects.get()
    assert (str(offer.price_usd), str(offer.native_price), offer.native_currency) == ("207.90", "189.00", "EUR")
    assert published()[0]["attributes"]["listing"] == held["listing"]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("none", [None, "", "0", "0.00", 0])
def test_what_is_no_price_is_none(system, none):
    product = {"shopify": shopify_product(shopify_variant(price=none)), "woocommerce": woo_product(price=none)}[system]
    assert send(system, product, {}).json()["results"][0]["reason"] == "no price"
    assert published() == []


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("bad", ["12,50", "-1", "1e3", "12.345", True, ["1"], "$5", "1,600.00"])
def test_a_price_that_is_neither_is_unreadable(system, bad):
    product = {"shopify": shopify_product(shopify_variant(price=bad)), "woocommerce": woo_product(price=bad)}[system]
    field = {"shopify": "variants[0].price", "woocommerce": "price"}[system]
    assert unreadable(send(system, product, {})) == ("invalid_price", field)
    assert not Listing.objects.exists()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("bad", [{"id": None}, {"id": "7"}, {"id": -7}, {"id": 1.5}, {"id": 10**30}])
def test_a_product_without_its_number_is_unreadable(system, bad):
    assert unreadable(send(system, {**PRODUCT[system], **bad}, {})) == ("invalid_product", "id")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_late_webhook_does_not_overwrite_newer_state(system):
    later = {
        "shopify": (
            shopify_product(shopify_variant(price="154.00")),
            {"X-Shopify-Triggered-At": "2026-03-14T10:00:00Z"},
        ),
        "woocommerce": (woo_product(price="154.00", date_modified_gmt="2026-03-14T10:00:00"), {}),
    }[system]
    send(system, *later)
    answer = send(system, PRODUCT[system], {DELIVERY[system]: "late"}).json()
    assert answer["results"][0]["reason"] == "stale"
    assert prices() == {"wn_4417": "154.00"}
    assert Listing.objects.get().price == 154


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_not_certain_waits_in_a_listing(system):
    product = {
        "shopify": shopify_product(title="Ch. Montrose 2016 6x75cl"),
        "woocommerce": woo_product(name="Ch. Montrose 2016 6x75cl"),
    }[system]
    assert send(system, product, {}).json()["results"][0]["reason"] == "unmatched"
    assert published() == []
    assert Listing.objects.get().price == 189


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_secret_is_logged(system, caplog):
    with caplog.at_level(logging.DEBUG):
        assert send(system, PRODUCT[system], {}).status_code == 202
        assert send(system, PRODUCT[system], {SIGNED[system]: "AAAA"}).status_code == 401
    assert "feed.invalid_signature" in caplog.text
    assert SECRET not in caplog.text


def test_a_shops_secret_is_its_text_and_not_too_short(merchant):
    merchant.signing_secrets.all().delete()
    for text in ("short", "x" * 201):
        with pytest.raises(ValueError, match="16 to 200 letters"):
            signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=text, kind="shopify")


# --- Shopify ----------------------------------------------------------------------------------------------------


def test_each_variant_is_a_listing_of_its_own():
    magnum = cast.wine("4418", size_ml=1500)
    older = cast.wine("4419", vintage=2015)
    answer = shopify(
        shopify_product(
            shopify_variant(11, "189.00", "75cl", "2016"),
            shopify_variant(12, "400.00", "Magnum", "2016"),
            shopify_variant(13, "1000.00", "Case of 6", "2016"),
            shopify_variant(14, "170.00", "2015", "Bottle"),
            shopify_variant(15, "9.00", "75cl", "2016", "Gift box"),
            title="Ch. Montrose",
        )
    ).json()
    assert [result["listing"] for result in answer["results"]] == [f"shopify/7/{id_}" for id_ in range(11, 16)]
    assert [result.get("reason") for result in answer["results"]] == [None, None, "unmatched", None, "unmatched"]
    assert prices() == {"wn_4417": "189.00", magnum.pk: "400.00", older.pk: "170.00"}


def test_the_time_is_when_it_was_triggered_and_else_when_it_was_updated():
    shopify(**{"X-Shopify-Triggered-At": "2026-03-14T09:00:00Z"})
    assert Offer.objects.get().occurred_at == NOW.replace(minute=0, second=0)
    shopify(shopify_product(shopify_variant(price="180.00")), **{"X-Shopify-Triggered-At": None})
    assert Offer.objects.get().occurred_at == NOW
    bad = shopify(**{"X-Shopify-Triggered-At": "soon", DELIVERY["shopify"]: "another"})
    assert unreadable(bad) == ("invalid_time", "x-shopify-triggered-at")


def test_a_bar_code_matches():
    type(cast.wine()).objects.update(gtin="04006381333931")
    shopify(shopify_product(shopify_variant(barcode="4006381333931"), title="Montrose rouge 2016"))
    assert prices() == {"wn_4417": "189.00"}


@pytest.mark.parametrize("status", ["draft", "archived"])
def test_a_product_that_is_not_for_sale_has_no_price(status):
    shopify()
    later = (NOW + timedelta(hours=1)).isoformat()
    answer = shopify(shopify_product(status=status), **{"X-Shopify-Triggered-At": later}).json()
    assert answer["results"][0]["reason"] == "no price"
    assert kept() == {"shopify/7/11": ("wn_4417", None)}


def test_a_variant_that_is_no_longer_there_is_gone():
    shopify(shopify_product(shopify_variant(11), shopify_variant(12, "400.00", "Magnum")))
    later = (NOW + timedelta(hours=1)).isoformat()
    answer = shopify(shopify_product(shopify_variant(11)), **{"X-Shopify-Triggered-At": later}).json()
    assert answer["results"][1] == {"listing": "shopify/7/12", "applied": False, "reason": "gone"}
    assert kept()["shopify/7/12"] == (None, None)
    assert kept()["shopify/7/11"][1] == 189


def test_a_deleted_product_is_gone_with_all_variants_and_no_other():
    shopify(shopify_product(shopify_variant(11), shopify_variant(12, "400.00", "Magnum")))
    shopify(shopify_product(shopify_variant(21), id=71))
    headers = {"X-Shopify-Topic": "products/delete", "X-Shopify-Triggered-At": (NOW + timedelta(hours=1)).isoformat()}
    answer = shopify({"id": 7}, **headers).json()
    assert [(each["listing"], each["reason"]) for each in answer["results"]] == [
        ("shopify/7/11", "gone"),
        ("shopify/7/12", "gone"),
    ]
    assert {id_: price for id_, (_, price) in kept().items()} == {
        "shopify/7/11": None,
        "shopify/7/12": None,
        "shopify/71/21": 189,
    }


def test_a_late_deletion_takes_nothing_back():
    shopify()
    headers = {"X-Shopify-Topic": "products/delete", "X-Shopify-Triggered-At": (NOW - timedelta(hours=1)).isoformat()}
    assert shopify({"id": 7}, **headers).json()["results"] == []
    assert kept()["shopify/7/11"][1] == 189


@pytest.mark.parametrize(
    ("product", "field"),
    [
        (shopify_product(variants=None), "variants"),
        (shopify_product(variants=[7]), "variants"),
        (shopify_product(shopify_variant(11), shopify_variant(11)), "variants"),
        (shopify_product(shopify_variant(None)), "variants[0].id"),
        (shopify_product(title=["x"]), "title"),
        (shopify_product(title="x" * 401), "title"),
        (shopify_product(shopify_variant(option1=7)), "variants[0].option1"),
        (shopify_product(shopify_variant(barcode=7)), "variants[0].barcode"),
    ],
)
def test_a_product_that_is_none_is_unreadable(product, field):
    assert unreadable(shopify(product)) == ("invalid_product", field)
    assert not Listing.objects.exists()


def test_a_product_with_too_many_variants_is_unreadable(settings):
    settings.FEED_MAX_BATCH = 1
    answer = shopify(shopify_product(shopify_variant(11), shopify_variant(12)))
    assert unreadable(answer) == ("batch_too_large", "variants")


# --- WooCommerce ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("merchant_id", ["mch_082", "mch_nobody"])
def test_the_unsigned_ping_is_answered_with_exactly_200_and_tells_nothing(merchant_id):
    response = Client().post(
        f"/feeds/v1/woocommerce/{merchant_id}", b"webhook_id=12", "application/x-www-form-urlencoded"
    )
    assert (response.status_code, response.content) == (200, b"{}")
    assert nothing_written()


@pytest.mark.parametrize("body", [b"", b"webhook_id=", b"webhook_id=12&x=1", b"webhook_id=" + b"1" * 99, b"{}"])
def test_another_form_is_no_ping(body):
    response = send("woocommerce", body, {"Content-Type": "application/x-www-form-urlencoded"})
    assert unreadable(response) == ("unsupported_media_type", None)
    unsigned = send(
        "woocommerce", body, {"Content-Type": "application/x-www-form-urlencoded", SIGNED["woocommerce"]: None}
    )
    assert unsigned.status_code == 401
    assert (
        Client().post("/feeds/v1/shopify/mch_082", b"webhook_id=1", "application/x-www-form-urlencoded").status_code
        == 401
    )


def test_a_sale_price_is_the_price():
    woo(woo_product(price="150.00", regular_price="210.00", sale_price="150.00"))
    assert prices() == {"wn_4417": "150.00"}


@pytest.mark.parametrize("type_", ["variable", "grouped", "external"])
def test_a_variable_products_price_is_that_of_none_of_its_variations(type_):
    woo(woo_product(type=type_, price="20.00", variations=[795, 796]))
    assert published() == []
    assert not Listing.objects.exists()


def test_a_product_that_becomes_variable_has_no_price_any_more():
    woo()
    woo(woo_product(type="variable", variations=[795], date_modified_gmt="2026-03-14T10:00:00"))
    assert kept() == {"woocommerce/794": ("wn_4417", None)}


def test_a_variation_is_named_by_its_options():
    size = [{"id": 1, "name": "Size", "option": "Magnum"}]
    magnum = cast.wine("4418", size_ml=1500)
    product = woo_product(id=795, type="variation", parent_id=794, name="Ch. Montrose 2016", attributes=size)
    woo(product, **{DELIVERY["woocommerce"]: "1"})
    product = woo_product(id=796, type="variation", parent_id=794, name="Ch. Montrose 2016 - Magnum", attributes=size)
    woo(product, **{DELIVERY["woocommerce"]: "2"})
    assert {id_: wine for id_, (wine, _) in kept().items()} == {
        "woocommerce/795": magnum.pk,
        "woocommerce/796": magnum.pk,
    }


@pytest.mark.parametrize("status", ["draft", "private", "pending", "trash"])
def test_a_product_that_is_not_published_has_no_price(status):
    assert woo(woo_product(status=status)).json()["results"][0]["reason"] == "no price"


def test_a_deleted_product_is_gone_and_no_other():
    woo()
    woo(woo_product(id=7940))
    answer = woo({"id": 794}, **{"X-WC-Webhook-Topic": "product.deleted"}).json()
    assert answer["results"] == [{"listing": "woocommerce/794", "applied": False, "reason": "gone"}]
    assert {id_: price for id_, (_, price) in kept().items()} == {"woocommerce/794": None, "woocommerce/7940": 189}


@pytest.mark.parametrize("bad", [None, "", 7, "2026-03-14T09:12:04+01:00", "2026-03-14", "0000-00-00T00:00:00"])
def test_a_time_that_is_none_is_unreadable(bad):
    assert unreadable(woo(woo_product(date_modified_gmt=bad))) == ("invalid_time", "date_modified_gmt")


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"name": 7}, "name"),
        ({"attributes": "x"}, "attributes"),
        ({"attributes": [7]}, "attributes"),
        ({"attributes": [{"option": 7}]}, "attributes[0].option"),
        ({"global_unique_id": 7}, "global_unique_id"),
        ({"type": {}}, "type"),
    ],
)
def test_a_woocommerce_product_that_is_none_is_unreadable(bad, field):
    assert unreadable(woo(woo_product(**bad))) == ("invalid_product", field)
