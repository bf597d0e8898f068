"""Slots are plain UTC arithmetic, whatever the host's zone; and what cron syntax surprises with is refused."""

import os
import time
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from jobs.schedule import cron

DAY = timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("0 2 * * * 30", "five fields"),  # seconds, to croniter
        ("0 2 * * * 0 2027", "five fields"),  # and years
        ("@daily", "five fields"),
        ("CRON_TZ=Europe/Paris 0 2 * * *", "five fields"),
        ("0  2 * * *", "five fields"),
        ("", "five fields"),
        ("0 2 13 * 5", "mean “either”"),  # every Friday and every 13th, not Friday the 13th
        ("0 2 * * 5#1", "only numbers"),
        ("0 2 l * *", "only numbers"),
        ("0 2 1w * *", "only numbers"),
        ("h h * * *", "only numbers"),
        ("r 2 * * *", "only numbers"),
        ("0 2 ? * *", "only numbers"),
        ("0 2 * * mon", "only numbers"),
        ("٠ 2 * * *", "only numbers"),
        ("-5 * * * *", "only numbers"),
        ("60 * * * *", "must rise within 0 to 59"),
        ("0 24 * * *", "must rise within 0 to 23"),
        ("0 2 0 * *", "must rise within 1 to 31"),
        ("0 2 * * 7", "must rise within 0 to 6"),  # a second name for Sunday
        ("50-10 * * * *", "must rise"),  # croniter lets ranges wrap
        ("*/7 * * * *", "a step"),  # ... 49, 56, 0: four minutes
        ("*/0 * * * *", "a step"),
        ("*/90 * * * *", "a step"),
        ("5-50/5 * * * *", "a step"),
        ("0 */5 * * *", "a step"),
        ("0 2 */2 * *", "a step"),  # the 31st, then the 1st
        ("5,5 * * * *", "twice"),
        ("0 2 31 * *", "not every month"),
        ("0 2 28-30 * *", "not every month"),
        ("0 2 31 2,4 *", "can never occur"),
    ],
)
def test_what_does_not_mean_what_it_seems_to_is_refused_in_words(expression: str, why: str) -> None:
    with pytest.raises(cron.BadCronError, match=why):
        cron.check(expression)


@pytest.mark.parametrize(
    "expression",
    ["0 2 * * *", "*/5 * * * *", "0 */6 * * *", "10 8-18 * * 1-5", "0 2 1,15 * *", "0 2 31 1,3 *", "0 2 29 2 *"],
)
def test_plain_expressions_are_let_in(expression: str) -> None:
    cron.check(expression)


FIELD = st.one_of(st.just(None), st.sets(st.integers(0, 59), min_size=1, max_size=4))


@hypothesis_settings(deadline=None, max_examples=60)
@given(
    minutes=FIELD,
    hours=st.one_of(st.just(None), st.sets(st.integers(0, 23), min_size=1, max_size=3)),
    weekdays=st.one_of(st.just(None), st.sets(st.integers(0, 6), min_size=1, max_size=2)),
    start=st.datetimes(at("2024-02-27").replace(tzinfo=None), at("2031-01-01").replace(tzinfo=None)),
)
def test_slots_are_exactly_the_minutes_that_match(
    minutes: set[int] | None, hours: set[int] | None, weekdays: set[int] | None, start: datetime
) -> None:
    """Against the definition: every minute of two days, looked at one by one."""
    start = start.replace(tzinfo=UTC)
    texts = ["*" if values is None else ",".join(map(str, sorted(values))) for values in (minutes, hours, weekdays)]
    expression = f"{texts[0]} {texts[1]} * * {texts[2]}"
    cron.check(expression)
    first = start.replace(second=0, microsecond=0)
    first += timedelta(minutes=1) if first < start else timedelta(0)
    expected = [
        moment
        for moment in (first + timedelta(minutes=n) for n in range(2 * 24 * 60))
        if (minutes is None or moment.minute in minutes)
        and (hours is None or moment.hour in hours)
        and (weekdays is None or moment.isoweekday() % 7 in weekdays)
    ]
    last = first + 2 * DAY - timedelta(microseconds=1)
    assert list(cron.slots_between(expression, start, last)) == expected
    if expected:
        assert cron.latest_slot(expression, last) == expected[-1]
        assert cron.latest_slot(expression, expected[-1]) == expected[-1], "a slot is not later than itself"
        assert cron.next_slot(expression, start - timedelta(microseconds=1)) == expected[0]


def test_the_leap_day_is_a_day_like_any_other() -> None:
    slots = list(cron.slots_between("0 2 * * *", at("2028-02-28"), at("2028-03-01T12:00")))
    assert slots == [at("2028-02-28T02:00"), at("2028-02-29T02:00"), at("2028-03-01T02:00")]
    assert cron.next_slot("0 2 29 2 *", at("2026-01-01")) == at("2028-02-29T02:00")
    assert cron.next_slot("59 23 31 12 *", at("2027-12-31T23:59")) == at("2028-12-31T23:59")


def _zones_with_transitions() -> Iterator[tuple[str, list[datetime]]]:
    """Each zone, and the days of 2024 to 2030 on which its offset changes."""
    days = [at("2024-01-01") + n * DAY for n in range(7 * 366)]
    for name in sorted(zoneinfo.available_timezones()):
        zone = zoneinfo.ZoneInfo(name)
        offsets = [day.astimezone(zone).utcoffset() for day in days]
        changes = [day for day, one, next_ in zip(days, offsets, offsets[1:], strict=False) if one != next_]
        if changes:
            yield name, changes


@pytest.fixture
def host_zone() -> Iterator[object]:
    before = os.environ.get("TZ")

    def become(name: str) -> None:
        os.environ["TZ"] = name
        time.tzset()

    yield become
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def test_no_zones_clock_change_from_2024_to_2030_moves_drops_or_doubles_a_slot(host_zone) -> None:
    met = 0
    for name, days in _zones_with_transitions():
        host_zone(name)
        for day in days:
            met += 1
            expected = [day + n * DAY + timedelta(hours=hour) for n in range(2) for hour in (1, 2, 3)]
            assert list(cron.slots_between("0 1-3 * * *", day, day + 2 * DAY - timedelta(seconds=1))) == expected, name
            assert cron.latest_slot("0 2 * * *", day + DAY) == day + timedelta(hours=2), name
    assert met > 2_000, "there were transitions to meet"


def test_a_time_in_any_zone_means_the_same_slots() -> None:
    kathmandu = zoneinfo.ZoneInfo("Asia/Kathmandu")
    local = datetime(2026, 3, 14, 7, 44, 59, tzinfo=kathmandu)
    assert cron.next_slot("0 2 * * *", local) == at("2026-03-14T02:00")
    assert cron.next_slot("0 2 * * *", local).tzinfo is UTC


@pytest.mark.parametrize(
    ("expression", "gap"),
    [("0 2 * * *", DAY), ("0 2 * * 1", 7 * DAY), ("10 8-18 * * 1-5", timedelta(hours=62)), ("0 2 1 * *", 31 * DAY)],
)
def test_the_longest_gap_between_slots_is_known(expression: str, gap: timedelta) -> None:
    assert cron.longest_gap(expression, at("2024-01-01")) == gap
