"""Amounts as the payment provider counts them."""

from decimal import Decimal

import pytest

from winecellar.purchases.money import MOST_UNITS, AmountError, amount_of, units


@pytest.mark.parametrize(
    ("amount", "currency", "count"),
    [("154.00", "USD", 15400), ("0.01", "EUR", 1), ("1540.00", "JPY", 1540), ("1.50", "KWD", 1500)],
)
def test_amounts_are_counted_in_the_smallest_units_and_back(amount: str, currency: str, count: int) -> None:
    assert units(Decimal(amount), currency) == count
    assert amount_of(count, currency) == Decimal(amount)


@pytest.mark.parametrize(("amount", "currency"), [("10.50", "JPY"), ("0", "USD"), ("-1", "USD"), ("1000000", "USD")])
def test_what_is_no_whole_number_of_units_or_too_much_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(AmountError):
        units(Decimal(amount), currency)
    assert units(amount_of(MOST_UNITS, "USD"), "USD") == MOST_UNITS
