"""Row 102: how often a merchant may call."""

import pytest
from django.db import connection
from django.utils import timezone

from pricing import keys
from pricing.models import FeedRate
from tests import cast
from tests.feeds.conftest import Feed, observation, refusal

pytestmark = pytest.mark.django_db


def test_row_102_above_the_rate_is_a_429_that_says_when_to_come_again(feed, wine, settings):
    settings.FEED_REQUESTS_PER_MINUTE = 2
    # The minute as it is now may end during the test: begin each count in a minute of its own.
    FeedRate.objects.all().delete()
    answers = [feed.post(observation()) for _ in range(5)]
    if FeedRate.objects.get().requests < 5:  # it did end: once more, and it cannot end again so soon
        answers = [feed.post(observation()) for _ in range(5)]
    refused = [answer for answer in answers if answer.status_code != 202]
    assert refused
    for answer in refused:
        assert refusal(answer) == (429, "rate_limited", None)
        assert 1 <= int(answer["Retry-After"]) <= 60


def test_the_count_starts_again_with_the_minute(feed, merchant, wine, settings):
    settings.FEED_REQUESTS_PER_MINUTE = 1
    FeedRate.objects.create(merchant=merchant, minute=cast.NOW, requests=1_000_000)
    assert feed.post(observation()).status_code == 202
    assert FeedRate.objects.get().requests == 1
    assert FeedRate.objects.get().minute > cast.NOW


def test_one_merchants_rate_is_not_anothers(feed, wine, settings):
    settings.FEED_REQUESTS_PER_MINUTE = 1
    _, other = keys.create_key(merchant=cast.merchant("083", "Merchant Y"), note="", now=timezone.now())
    assert feed.post(observation()).status_code == 202
    assert Feed(other).post(observation()).status_code == 202


def test_a_request_without_valid_credentials_counts_for_nobody(feed, wine):
    feed.post(observation(), Authorization=f"Bearer wck_00000000_{'a' * 43}")
    assert not FeedRate.objects.exists()


def test_bad_bodies_count(feed, wine):
    feed.post(b"{")
    assert FeedRate.objects.get().requests == 1


def test_counting_costs_no_disk_flush():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'pricing_feedrate'")
        assert cursor.fetchone() == ("u",)
