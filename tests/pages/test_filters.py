"""How the pages write prices, sizes, parts and times."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from pricing.sizes import size_words
from winecellar.templatetags import cellar

NOON = datetime(2026, 3, 14, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cellar.timezone, "now", lambda: NOON)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("0.01"), "$0.01"),
        (Decimal("99999999.99"), "$99,999,999.99"),
        (None, "–"),
        ("", "–"),
    ],
)
def test_a_price(value: Any, written: str) -> None:
    assert cellar.usd(value) == written


@pytest.mark.parametrize(
    ("value", "written"), [("150", "$150"), ("150.00", "$150"), ("2.50", "$2.50"), ("1500", "$1,500")]
)
def test_a_price_on_an_axis(value: str, written: str) -> None:
    assert cellar.usd_short(Decimal(value)) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("12.4", "12 %"),
        ("12.5", "13 %"),
        ("-12.5", "13 %"),
        ("0.5", "1 %"),
        ("0.4", "under 1 %"),
        ("0", "0 %"),
        ("-0.1", "under 1 %"),
    ],
)
def test_a_part(value: str, written: str) -> None:
    assert cellar.percent(Decimal(value)) == written.replace(" %", "\u00a0%")


@pytest.mark.parametrize(
    ("millilitres", "written"),
    [
        (750, "75 cl"),
        (375, "Half bottle, 37.5 cl"),
        (500, "50 cl"),
        (1_000, "1 l"),
        (1_500, "Magnum, 1.5 l"),
        (3_000, "Double magnum, 3 l"),
        (30_000, "30 l"),
        (50, "5 cl"),
    ],
)
def test_a_size(millilitres: int, written: str) -> None:
    assert size_words(millilitres).replace("\u00a0", " ") == written


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (NOON, "today 12:00 UTC"),
        (NOON - timedelta(hours=12), "today 00:00 UTC"),
        (NOON - timedelta(hours=12, seconds=1), "yesterday 23:59 UTC"),
        (NOON - timedelta(days=2), "12 Mar 12:00 UTC"),
        (NOON - timedelta(days=90), "14 Dec 2025 12:00 UTC"),
        (datetime(2026, 3, 14, 1, 30, tzinfo=timezone(timedelta(hours=5))), "yesterday 20:30 UTC"),
    ],
)
def test_a_time_has_its_zone_and_is_machine_readable(at: datetime, written: str) -> None:
    iso = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert cellar.moment(at).replace("\u00a0", " ") == f'<time datetime="{iso}">{written}</time>'


def test_a_time_in_the_log_has_its_seconds() -> None:
    assert "today 12:00:07\u00a0UTC" in cellar.moment(NOON + timedelta(seconds=7), "seconds")


@pytest.mark.parametrize(("count", "written"), [(0, "never"), (1, "once"), (2, "twice"), (3, "3 times")])
def test_how_often(count: int, written: str) -> None:
    assert cellar.times(count) == written
