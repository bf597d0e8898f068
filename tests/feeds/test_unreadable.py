"""A signed webhook that nobody can read is a dead letter with its body, and its sender is told 2xx."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from jobs import catalog
from jobs.dead_letters import preflight, redrive, services
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from jobs.models import DeadLetter
from pricing import signing
from pricing.feeds import shopify
from pricing.feeds.refusals import UNREADABLE as UNREADABLE_CODES
from pricing.models import FeedAnswer, IgnoredWebhook, Listing, RawBody
from tests.cast import with_app
from tests.feeds.conftest import nothing_written, refusal, unreadable
from tests.feeds.shops import SECRET, send, shopify_product, shopify_variant, signature, woo_product
from tests.feeds.test_shops import DELIVERY, PRODUCT, SIGNED, SYSTEMS, TOPIC
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db(transaction=True)

UNREADABLE = {
    "no JSON": (b"{", "invalid_json", None),
    "empty": (b"", "invalid_json", None),
    "no UTF-8": (b'{"id": "\xff"}', "invalid_encoding", None),
    "NUL": (b'{"id": "\x00"}', "invalid_encoding", None),
    "NUL as an escape": (b'{"title": "\\u0000"}', "forbidden_character", "title"),
    "half a surrogate pair": (b'{"title": "\\ud800"}', "forbidden_character", "title"),
    "too deep": (b"[" * 2_000, "too_deep", None),
    "another shape": (b"[]", "expected_object", None),
    "HTML": (b"<html>502 Bad Gateway</html>", "invalid_json", None),
}


# A body of Shopify's for each code that an answer may name under `unreadable`.
CODES = {
    "invalid_encoding": b"\xff",
    "invalid_json": b"{",
    "duplicate_key": b'{"id": 7, "id": 8}',
    "too_deep": b"[" * 2_000,
    "forbidden_character": b'{"title": "\\u0000"}',
    "expected_object": b"[]",
    "invalid_product": shopify_product(id="7"),
    "invalid_price": shopify_product(shopify_variant(11, "12,50")),
    "invalid_time": shopify_product(updated_at="yesterday"),
    "time_out_of_range": shopify_product(updated_at="2999-01-01T00:00:00Z"),
    "batch_too_large": shopify_product(*map(shopify_variant, range(1_001))),
}


@pytest.fixture(autouse=True)
def _secrets(merchant, wine):
    type(merchant).objects.update(currency="USD")
    for kind in SYSTEMS:
        signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=SECRET, kind=kind)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", UNREADABLE)
def test_it_becomes_a_dead_letter_with_the_body_the_error_and_the_merchant(system, name):
    body, code, field = UNREADABLE[name]
    response = send(system, body, {})
    assert unreadable(response) == (code, field)
    letter, raw = DeadLetter.objects.get(), RawBody.objects.get()
    assert (letter.subscription_name, letter.message_type) == ("feed-intake", "feed.webhook_unreadable")
    assert (letter.cause, letter.receive_count, letter.message_id) == ("permanent", 1, None)
    assert letter.error_class == "FeedError"
    assert letter.reason.startswith(f"{code} at {field}: " if field else f"{code}: ")
    assert (letter.key, letter.body["merchant_id"], letter.body["source"]) == ("mch_082", "mch_082", system)
    assert letter.attributes["request_id"] == response["X-Request-ID"]
    assert letter.event_id.startswith("evt_")
    assert [failure["reason"] for failure in letter.failures] == [letter.reason]
    assert letter.published_at == letter.first_received_at == letter.dead_lettered_at or letter.published_at
    assert bytes(raw.body) == body
    assert published() == []
    assert not Listing.objects.exists()


def test_each_code_that_is_described_is_there():
    assert set(CODES) == set(UNREADABLE_CODES)


@pytest.mark.parametrize("code", CODES)
def test_it_is_told_by_its_code(code):
    assert unreadable(send("shopify", CODES[code], {"X-Shopify-Triggered-At": None}))[0] == code


@pytest.mark.parametrize("system", SYSTEMS)
def test_sent_again_it_is_the_same_dead_letter(system):
    answers = [send(system, b"{", {}).json() for _ in range(3)]
    assert [answer["duplicate"] for answer in answers] == [False, True, True]
    assert all(answer["unreadable"]["code"] == "invalid_json" for answer in answers)
    assert DeadLetter.objects.count() == RawBody.objects.count() == FeedAnswer.objects.count() == 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_one_bad_variant_or_price_takes_nothing_of_the_webhook(system):
    bad = {
        "shopify": shopify_product(shopify_variant(11), shopify_variant(12, "12,50")),
        "woocommerce": woo_product(price="12,50"),
    }[system]
    field = {"shopify": "variants[1].price", "woocommerce": "price"}[system]
    assert unreadable(send(system, bad, {})) == ("invalid_price", field)
    assert not Listing.objects.exists()


@pytest.mark.parametrize("system", SYSTEMS)
def test_unsigned_or_wrongly_signed_it_is_a_401_and_nothing_is_kept(system):
    assert refusal(send(system, b"{", {SIGNED[system]: None})) == (401, "missing_credentials", None)
    assert refusal(send(system, b"{", {SIGNED[system]: signature(b"[")})) == (401, "invalid_credentials", None)
    assert nothing_written()


def test_secrets_in_the_excerpt_are_masked():
    send("shopify", b'{"api_key": "opensesame"', {})
    assert "opensesame" not in str(DeadLetter.objects.values().get())


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("topic", ["orders/create", "customer.created", None, "x" * 5_000])
def test_an_unknown_topic_is_counted_and_no_dead_letter(system, topic):
    for body in (b"{", b'{"id": 7}'):
        response = send(system, body, {TOPIC[system]: topic})
        assert (response.status_code, response.json()["ignored"]) == (202, "unknown topic")
    ignored = IgnoredWebhook.objects.get()
    assert (ignored.system, ignored.count, ignored.last_topic) == (system, 2, (topic or "")[:100])
    assert nothing_written()


def test_a_good_one_after_it_is_recorded():
    send("shopify", b"{", {})
    answer = send("shopify", PRODUCT["shopify"], {DELIVERY["shopify"]: "next"}).json()
    assert answer["results"][0]["applied"] is True


def test_the_admin_shows_it_beside_the_others():
    send("woocommerce", b"{", {})
    boss = with_app(get_user_model().objects.create_superuser("boss@winecellar.example", "x", name="Boss"))
    client = Client()
    client.force_login(boss)
    assert "feed-intake" in client.get("/admin/jobs/deadletter/").content.decode()
    page = client.get(f"/admin/jobs/deadletter/{DeadLetter.objects.get().pk}/change/").content.decode()
    assert "invalid_json" in page
    send("woocommerce", b"{", {TOPIC["woocommerce"]: "order.created"})
    assert "order.created" in client.get("/admin/pricing/ignoredwebhook/").content.decode()


def test_it_is_kept_as_long_as_any_dead_letter(settings):
    send("woocommerce", b"{", {})
    before = timezone.now() - settings.DEAD_LETTER_RETENTION
    assert catalog.purge_dead_letters(before, batch=10) == 0
    DeadLetter.objects.update(dead_lettered_at=before)
    assert catalog.purge_dead_letters(timezone.now() - settings.DEAD_LETTER_RETENTION, batch=10) == 1


def test_once_the_adapter_is_mended_the_letter_is_taken_again_as_if_it_had_just_come(monkeypatch, wine):
    """Re-adapting what never was a message makes listings and events of its own; redriving it as it is cannot be."""
    send("shopify", shopify_product(shopify_variant(11, "12,50")), {})
    one = Selection(subscription="feed-intake")
    as_is = preflight.look(one, kind=Decision.REDRIVE, now=timezone.now())
    still = preflight.look(one, kind=Decision.READAPT, now=timezone.now())
    assert (as_is.would_pass, still.would_pass) == (0, 0)
    assert "it never was in the message log" in as_is.in_words
    assert "the raw body still cannot be read" in still.in_words
    broken = shopify.adapt

    def mended(headers, document, **given):
        for variant in document["variants"]:
            variant["price"] = variant["price"].replace(",", ".")
        return broken(headers, document, **given)

    monkeypatch.setattr(shopify, "adapt", mended)
    assert preflight.look(one, kind=Decision.READAPT, now=timezone.now()).would_pass == 1
    run = services.redrive(selection=one, kind=Decision.READAPT, by="x", note="mended", now=timezone.now()).redrive
    redrive.step(run.pk)
    redrive.step(run.pk)
    run.refresh_from_db()
    assert (run.state, run.counts) == ("done", {"applied": 1})
    assert Listing.objects.count() == 1
    assert DeadLetter.objects.get().decision == "readapt"
