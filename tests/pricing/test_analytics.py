"""The rows by the day, kept by their subscription and made again from the history."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from jobs.worker import drain
from pricing import analytics, availability
from pricing.models import DailyPrice
from tests.cast import NOW, merchant, price, wine
from tests.pricing.observed import received

pytestmark = pytest.mark.django_db(transaction=True)
DAY = 24 * 60
CountQueries = Callable[..., Any]


def table() -> list[tuple[Any, ...]]:
    rows = DailyPrice.objects.order_by("wine_id", "day")
    return [
        (row.wine_id, row.day.isoformat(), str(row.low), str(row.high), str(row.close), str(row.average), row.offers)
        for row in rows
    ]


def some_days() -> None:
    other = merchant("2", "Another")
    price("189.00")
    price("154.00", minutes=5)
    price("150.00", at=other, minutes=DAY)
    price("170.00", at=other, minutes=3 * DAY)
    price("20.00", of=wine("9"), minutes=DAY)
    at = NOW + timedelta(days=4)
    availability.withdraw(merchant=merchant(), wine_ids=[wine().pk], at=at, why="sold out", now=at)
    drain(["price-history", "analytics-rollup"])


WRITTEN = [
    ("wn_4417", "2026-03-14", "154.00", "189.00", "154.00", "154.00", 1),
    ("wn_4417", "2026-03-15", "150.00", "154.00", "150.00", "152.00", 2),
    ("wn_4417", "2026-03-17", "150.00", "154.00", "154.00", "162.00", 2),
    ("wn_4417", "2026-03-18", "154.00", "170.00", "170.00", "170.00", 1),
    ("wn_9", "2026-03-15", "20.00", "20.00", "20.00", "20.00", 1),
]


def test_every_price_and_every_end_of_an_offer_is_entered_in_its_day() -> None:
    some_days()
    assert table() == WRITTEN


def test_a_message_that_comes_again_or_late_changes_nothing() -> None:
    first = price("189.00")
    some_days()
    with transaction.atomic():
        analytics.enter([received(first.as_message().body)])
    assert table() == WRITTEN


def test_the_rows_are_made_again_from_the_history() -> None:
    some_days()
    DailyPrice.objects.filter(wine_id="wn_9").delete()
    DailyPrice.objects.update(low="1.00", asked={})
    call_command("rebuild", "analytics-rollup", stdout=StringIO(), stderr=StringIO())
    assert table() == WRITTEN
    price("140.00", minutes=5 * DAY)
    drain(["analytics-rollup"])
    assert table()[4] == ("wn_4417", "2026-03-19", "140.00", "170.00", "140.00", "155.00", 2)


def test_only_the_named_wines_are_made_again() -> None:
    some_days()
    DailyPrice.objects.all().delete()
    call_command("rebuild", "analytics-rollup", "--wine", "wn_9", stdout=StringIO(), stderr=StringIO())
    assert table() == WRITTEN[4:]


def test_the_standing_of_several_wines_takes_two_queries(django_assert_num_queries: CountQueries) -> None:
    some_days()
    with django_assert_num_queries(2):
        found = analytics.standing(["wn_4417", "wn_9", "wn_none"], now=NOW + timedelta(days=9))
    assert found["wn_4417"].low(90) == Decimal("150.00")
    assert found["wn_4417"].high(90) == Decimal("189.00")
    assert found["wn_4417"].times_at_or_below(Decimal("160")) == 1
    assert (found["wn_4417"].ever_low, str(found["wn_4417"].ever_low_on)) == (Decimal("150.00"), "2026-03-15")
    assert found["wn_9"].now == Decimal("20.00")
    assert found["wn_none"].now is None


def test_what_is_older_than_a_year_is_only_what_the_year_began_with() -> None:
    some_days()
    found = analytics.standing(["wn_4417"], now=NOW + timedelta(days=500))["wn_4417"]
    assert [day.day.isoformat() for day in found.days] == ["2026-03-18"]
    assert (found.low(365), found.high(365)) == (Decimal("170.00"), Decimal("170.00"))
    assert found.ever_low == Decimal("150.00")


def test_the_biggest_falls_come_first_in_one_query(django_assert_num_queries: CountQueries) -> None:
    for number, (before, after) in enumerate([("100", "90"), ("50", "40"), ("10", "12"), ("30", "29.99")]):
        price(before, of=wine(str(number)))
        price(after, of=wine(str(number)), minutes=9 * DAY)
    drain(["analytics-rollup"])
    with django_assert_num_queries(1):
        falls = analytics.biggest_falls(["wn_0", "wn_1", "wn_2", "wn_3"], now=NOW + timedelta(days=10), most=2)
    assert [(fall.wine_id, fall.percent) for fall in falls] == [("wn_1", Decimal(20)), ("wn_0", Decimal(10))]


@pytest.mark.publishes_malformed_events
def test_a_malformed_event_is_buried_and_its_mates_are_entered() -> None:
    from jobs.messages import NewMessage
    from jobs.outbox import publish

    price("189.00")
    with transaction.atomic():
        publish([NewMessage("wine.price_changed", "wn_4417", {"wine_id": "wn_4417"})])
    price("150.00", minutes=1)
    drain(["analytics-rollup"])
    assert [row[2:5] for row in table()] == [("150.00", "189.00", "150.00")]
