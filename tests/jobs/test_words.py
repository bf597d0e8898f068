"""Times and spans as people read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from jobs.words import span, utc

S, M, H, D = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (0 * S, "0 ms"),
        (1.5 * S, "1 s"),
        (S / 40, "25 ms"),
        (59 * S, "59 s"),
        (90 * S, "1 min 30 s"),
        (26 * H + 10 * M + 5 * S, "26 h 10 min"),
        (2 * D + 3 * H, "2 d 3 h"),
        (14 * D, "14 d"),
    ],
)
def test_a_span_of_time_in_words(time: timedelta, words: str) -> None:
    assert span(time) == words


def test_a_time_is_said_in_utc_whatever_its_zone() -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    assert utc(datetime(2026, 3, 14, 7, 45, tzinfo=kathmandu)) == utc(datetime(2026, 3, 14, 2, 0, tzinfo=UTC))
    assert utc(datetime(2026, 3, 14, 2, 0, tzinfo=UTC)) == "2026-03-14 02:00 UTC"
