"""Webhooks of one shop at the same moment: no deadlock, no 500, and what was said last stands."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import DeadLetter
from pricing import signing
from pricing.models import FeedAnswer, Listing, Offer, RawBody
from tests import cast
from tests.feeds.patience import until_taken
from tests.feeds.shops import SECRET, send, shopify_product, shopify_variant
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db(transaction=True)
SIZES = {"75cl": 750, "37.5cl": 375, "Magnum": 1500, "3 l": 3000}


@pytest.fixture(autouse=True)
def _shop(db: None) -> None:
    seller = cast.merchant()
    type(seller).objects.update(currency="USD")
    signing.create_secret(merchant=seller, note="", now=timezone.now(), text=SECRET, kind="shopify")
    # Ids that sort against the order of the variants.
    for number, size in enumerate(SIZES.values()):
        cast.wine(str(9 - number), size_ml=size)


def at_once(count: int, call: Callable[[int], Any]) -> list[Any]:
    """Each call in a thread and on a connection of its own, all let go at one moment."""
    together = threading.Barrier(count)

    def run(number: int) -> Any:
        try:
            together.wait(60)
            return call(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as threads:
        return [done.result(timeout=120) for done in [threads.submit(run, number) for number in range(count)]]


def patiently(content: Any, headers: dict[str, str]) -> Any:
    """Sent as the shop sends it: a 503 is followed by the same again."""
    return until_taken(
        lambda: send("shopify", content, headers),
        lambda answer: answer.status_code,
        lambda answer: answer.get("Retry-After"),
    )


def webhook(turn: int, number: int, minute: int) -> Any:
    """The same product as four hooks say it: all variants, the other way round, half of them, or deleted."""
    sizes = list(SIZES)
    variants = [shopify_variant(id_, f"{100 + id_}.00", size) for id_, size in enumerate(sizes, start=11)]
    variants.append(shopify_variant(100 + turn, "250.00", "75cl"))  # each turn a new one, of a wine that there is
    shown = [variants, variants[::-1], variants[::2], []][number]
    headers = {
        "X-Shopify-Webhook-Id": f"{turn}-{number}",
        "X-Shopify-Triggered-At": f"2026-03-14T{minute // 60:02}:{minute % 60:02}:00Z",
    }
    if not shown:
        return patiently({"id": 7}, {**headers, "X-Shopify-Topic": "products/delete"})
    return patiently(shopify_product(*shown, title="Ch. Montrose 2016"), headers)


def test_different_webhooks_on_the_same_listings_at_once_are_all_taken() -> None:
    turns, statuses = 12, Counter[int]()
    for turn in range(turns):
        # The first of all is the latest in every third turn, the deletion in the others.
        minutes = [turn * 10 + 4, turn * 10 + 1, turn * 10 + 2, turn * 10 + (3 if turn % 3 == 0 else 5)]
        answers = at_once(4, lambda number, turn=turn, minutes=minutes: webhook(turn, number, minutes[number]))
        statuses.update(answer.status_code for answer in answers)
        gone = {offer.withdrawn_at is not None for offer in Offer.objects.all()}
        assert gone == {turn % 3 != 0}, turn
    assert statuses == {202: 4 * turns}
    assert not DeadLetter.objects.exists()
    assert Listing.objects.count() == len(SIZES) + turns


@pytest.mark.parametrize("body", [None, b"{"])
def test_64_copies_of_one_webhook_at_once_are_taken_once(body: bytes | None) -> None:
    document = shopify_product(shopify_variant(11)) if body is None else body
    answers = at_once(64, lambda _: patiently(document, {}))
    assert Counter(answer.status_code for answer in answers) == {202: 64}
    assert Counter(answer.json()["duplicate"] for answer in answers) == {False: 1, True: 63}
    assert FeedAnswer.objects.count() == RawBody.objects.count() == 1
    assert (Offer.objects.count(), len(published()), DeadLetter.objects.count()) == (
        (1, 1, 0) if body is None else (0, 0, 1)
    )
