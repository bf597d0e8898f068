from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection

from pricing.contract import CURRENCIES, TIME_PATTERN, parse_time

READABLE = {
    "2026-03-14T09:12:04Z": datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC),
    "2026-03-14t09:12:04z": datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC),
    "2026-03-14T09:12:04.5Z": datetime(2026, 3, 14, 9, 12, 4, 500_000, tzinfo=UTC),
    "2026-03-14T09:12:04.123456789Z": datetime(2026, 3, 14, 9, 12, 4, 123_456, tzinfo=UTC),
    "2024-02-29T23:59:59+05:45": datetime(2024, 2, 29, 23, 59, 59, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    "2026-03-14T00:00:00-08:00": datetime(2026, 3, 14, tzinfo=timezone(-timedelta(hours=8))),
    "2026-03-14T00:00:00-00:30": datetime(2026, 3, 14, tzinfo=timezone(-timedelta(minutes=30))),
}
UNREADABLE = {
    "row 75 empty": "",
    "row 76 naive": "2026-03-14T09:12:04",
    "row 77 date only": "2026-03-14",
    "row 78 week date": "2026-W11-6T09:12:04Z",
    "row 79 30 February": "2024-02-30T09:12:04Z",
    "row 80 24:00": "2026-03-14T24:00:00Z",
    "row 81 second 60": "2026-03-14T09:12:60Z",
    "row 82 offset +25:00": "2026-03-14T09:12:04+25:00",
    "offset +16:00": "2026-03-14T09:12:04+16:00",
    "offset without colon": "2026-03-14T09:12:04+0100",
    "space for T": "2026-03-14 09:12:04Z",
    "no seconds": "2026-03-14T09:12Z",
    "comma": "2026-03-14T09:12:04,5Z",
    "Arabic digits": "٢٠٢٦-٠٣-١٤T٠٩:١٢:٠٤Z",
    "newline at the end": "2026-03-14T09:12:04Z\n",
    "year 0": "0000-03-14T09:12:04Z",
    "unix time": "1773479524",
    "a word": "now",
}


@pytest.mark.parametrize("text", READABLE)
def test_rfc_3339_times_are_read(text):
    assert parse_time(text) == READABLE[text]


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_time_with_an_offset_is_refused(text):
    with pytest.raises(ValueError, match=r"RFC 3339|out of range|must be in"):
        parse_time(text)


@pytest.mark.django_db
def test_postgres_reads_every_time_as_python_does_to_the_microsecond():
    for text, expected in READABLE.items():
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s ~ %s, %s::timestamptz", [text, TIME_PATTERN, text])
            matches, value = cursor.fetchone()
        assert matches
        assert abs(value - expected) <= timedelta(microseconds=1)  # it rounds the ninth digit, Python cuts


@pytest.mark.django_db
def test_postgres_and_python_agree_about_the_pattern():
    calendar = {"row 79 30 February", "year 0"}  # these have the right form and no such day
    for name, text in UNREADABLE.items():
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s ~ %s", [text, TIME_PATTERN])
            [matches] = cursor.fetchone()
        assert matches == (name in calendar), name


def test_the_currencies_are_money():
    assert {"USD", "EUR", "GBP", "CHF", "JPY"} <= CURRENCIES
    assert not {"XXX", "XTS", "XAU", "HRK", "BGN", "ANG", "usd", "", "EURO"} & CURRENCIES
    assert all(len(code) == 3 and code.isascii() and code.isupper() for code in CURRENCIES)
