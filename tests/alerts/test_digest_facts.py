"""What a week comes to: pure."""

import json
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from alerts.digest.facts import Close, Drop, Fired, Week, choose, kept, read
from alerts.digest.mail import subject


class Worth(NamedTuple):
    currency: str
    value: Decimal
    before: Decimal | None


def drop(name: str, before: str, now: str) -> Drop:
    return Drop(f"wn_{name}", name, Decimal(before), Decimal(now), "Merchant X")


def close(number: int, now: str, target: str) -> Close:
    return Close(number, f"wine {number}", "USD", Decimal(now), Decimal(target))


FIRED = Fired(1, "a", "USD", Decimal("154.00"), Decimal("160.00"), "Merchant X")


def week(**given: Any) -> Week:
    return choose(**{"drops": [], "fired": [], "close": [], "worth": None, "lines": 2, **given})


def test_those_that_fell_most_in_their_own_terms_come_first_and_the_rest_is_counted() -> None:
    found = week(
        drops=[
            drop("a", "100", "90"),
            drop("b", "10", "5"),
            drop("c", "1000", "850"),
            drop("d", "50", "50"),
            drop("e", "5", "6"),
        ]
    )
    assert [each.name for each in found.drops] == ["b", "c"]
    assert found.drop_count == 3


def test_those_with_least_to_fall_come_first_and_those_that_are_there_wait_no_more() -> None:
    found = week(close=[close(1, "200", "100"), close(2, "105", "100"), close(3, "100", "100"), close(4, "11", "10")])
    assert [each.alert_id for each in found.close] == [2, 4]


@pytest.mark.parametrize(
    ("given", "news"),
    [
        ({}, False),
        ({"close": [close(1, "101", "100")]}, False),
        ({"drops": [drop("a", "5", "6")]}, False),
        ({"drops": [drop("a", "6", "5")]}, True),
        ({"fired": [FIRED]}, True),
        ({"worth": Worth("EUR", Decimal("10.00"), None)}, False),
        ({"worth": Worth("EUR", Decimal("10.00"), Decimal("10.00"))}, False),
        ({"worth": Worth("EUR", Decimal("10.00"), Decimal("9.99"))}, True),
    ],
)
def test_a_week_is_news_when_something_happened_in_it(given: dict[str, Any], news: bool) -> None:
    assert week(**given).is_news is news


def test_what_is_kept_reads_back_with_all_its_digits() -> None:
    found = week(
        drops=[drop("a", "1234567.10", "0.01")],
        fired=[FIRED, FIRED, FIRED],
        close=[close(1, "101.00", "100.00")],
        worth=Worth("CHF", Decimal("10.00"), Decimal("9.90")),
    )
    again = read(json.loads(json.dumps(kept(found))))
    assert again == found
    assert str(again.drops[0].before) == "1234567.10"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"drops": [drop("Ch. Montrose 2016", "200", "164")]}, "Your week: Ch. Montrose 2016 fell 18 %"),
        (
            {"drops": [drop("a", "4", "2"), drop("b", "4", "3")], "fired": [FIRED]},
            "Your week: a fell 50 % and 1 more fell, 1 alert",
        ),
        ({"fired": [FIRED] * 3}, "Your week: 3 alerts"),
        ({"worth": Worth("EUR", Decimal(1), Decimal(2))}, "Your week: your cellar’s worth changed"),
    ],
)
def test_the_subject_says_the_largest_thing_first(given: dict[str, Any], says: str) -> None:
    assert subject(week(**given)) == says
