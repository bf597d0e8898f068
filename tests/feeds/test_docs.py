"""The merchant's guide names every answer the feed gives, and no other."""

import re

from django.conf import settings

from jobs import standard_webhooks
from pricing import signing
from pricing.contract import LARGEST_NATIVE_PRICE, LARGEST_PRICE
from pricing.feeds import canonical, cloudevents, formats, shopify, woocommerce
from pricing.feeds.refusals import REFUSALS
from pricing.listings import Kept

GUIDE = (settings.BASE_DIR / "docs" / "feeds.md").read_text()


def test_the_guide_has_every_refusal_in_the_words_of_the_code():
    in_guide = re.findall(r"^\| (\d{3}) \| `([a-z_]+)` \| (.+) \|$", GUIDE, re.MULTILINE)
    assert in_guide == [(str(told.status), code, told.meaning) for code, told in REFUSALS.items()]


def test_the_guide_has_the_numbers_of_the_settings():
    for text in (
        f"Up to {settings.FEED_MAX_BATCH:,} at once, in at most {settings.FEED_MAX_BODY_BYTES:,} bytes",
        f"more than {settings.FEED_MAX_BATCH:,} observations",
        f"at most {settings.FEED_CLOCK_TOLERANCE.seconds // 60} minutes ahead of our clock",
        f"at most {settings.FEED_SIGNATURE_TOLERANCE.seconds // 60} minutes away from our clock",
        f"base64 of {standard_webhooks.SHORTEST_SECRET} to {standard_webhooks.LONGEST_SECRET} bytes",
        f"up to {standard_webhooks.MOST_SIGNATURES} of them",
        f"up to {canonical.LONGEST_DELIVERY_ID} and {cloudevents.LONGEST_TEXT} characters",
        f"1 to {canonical.LONGEST_DELIVERY_ID} printable characters",
        f"{signing.SHORTEST_SHOP_SECRET} to {signing.LONGEST_SHOP_SECRET} letters",
        f"not before {settings.FEED_EARLIEST}",
        f"more than {settings.FEED_HOLD_FACTOR} times your last price",
        f"deeper than {settings.FEED_MAX_DEPTH} levels",
        f"answers for {settings.FEED_ANSWER_RETENTION.days} days",
        f"keep the body for {settings.FEED_RAW_BODY_RETENTION.days} days",
        f"at most {settings.FEED_RATE_MAX_AGE.days} days before",
        f"at most {LARGEST_PRICE} (in other money than dollars, {LARGEST_NATIVE_PRICE})",
        f"up to {settings.FEED_LOCK_TIMEOUT.seconds} seconds",
        f"more than {settings.FEED_REQUESTS_PER_MINUTE:,} requests in a minute",
        f"within {['zero', 'one', 'two', 'three', 'four', 'five'][settings.ALERT_PROMISE.seconds // 60]} minutes",
    ):
        assert " ".join(text.split()) in " ".join(GUIDE.split()), text


def test_the_guide_has_every_topic_and_reason_of_the_source():
    words = set(re.findall(r"`([^`\n]+)`", GUIDE))
    for adapter in (shopify, woocommerce):
        assert {*adapter.CHANGED, adapter.DELETED} <= words
    assert {str(why) for why in Kept} <= words


def test_the_guide_has_every_form_of_the_source():
    assert {f"`{media_type}`" for media_type in formats.MEDIA_TYPES} <= set(re.findall(r"`[^`\n]+`", GUIDE))
