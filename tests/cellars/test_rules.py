"""The cascade of values, and why a value changed."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winecellar.cellars.rules import Basis, Line, Money, Offered, Source, Worth, explain, worth

D = Decimal
DOLLARS = Basis("USD", {"USD": D(1), "EUR": D("0.8"), "JPY": D(150)})
EUROS = Basis("EUR", DOLLARS.rates)
UNSCALED = Basis("USD", DOLLARS.rates, scales_by_size=False)
OWN, OFFER, PAID = Money(D(90), "USD"), Offered(D(100), 750), Money(D(60), "EUR")
OLD = Offered(D(80), 750, date(2026, 1, 2))


@pytest.mark.parametrize(
    ("basis", "size", "known", "expected"),
    [
        (DOLLARS, 750, {"own": OWN, "offered": OFFER, "paid": PAID}, Worth(D("90.00"), Source.OWN)),
        (DOLLARS, 750, {"offered": OFFER, "paid": PAID}, Worth(D("100.00"), Source.OFFER)),
        (DOLLARS, 750, {"offered": OLD, "paid": PAID}, Worth(D("80.00"), Source.LAST_OFFER, date(2026, 1, 2))),
        (DOLLARS, 750, {"paid": PAID}, Worth(D("75.00"), Source.PAID)),
        (DOLLARS, 750, {}, Worth(None, Source.NONE)),
        # Sizes: by volume, or not at all.
        (DOLLARS, 1500, {"offered": OFFER}, Worth(D("200.00"), Source.OFFER)),
        (DOLLARS, 375, {"offered": OLD}, Worth(D("40.00"), Source.LAST_OFFER, date(2026, 1, 2))),
        (UNSCALED, 1500, {"offered": OFFER, "paid": PAID}, Worth(D("75.00"), Source.PAID)),
        (UNSCALED, 1500, {"offered": OFFER}, Worth(None, Source.NONE)),
        (UNSCALED, 750, {"offered": OFFER}, Worth(D("100.00"), Source.OFFER)),
        # Currencies.
        (EUROS, 750, {"offered": OFFER}, Worth(D("80.00"), Source.OFFER)),
        (EUROS, 750, {"own": OWN}, Worth(D("72.00"), Source.OWN)),
        (EUROS, 750, {"paid": PAID}, Worth(D("60.00"), Source.PAID)),
        (EUROS, 750, {"paid": Money(D(5), "XAU")}, Worth(None, Source.NONE)),
        (EUROS, 750, {"own": Money(D(5), "XAU"), "offered": OFFER}, Worth(D("80.00"), Source.OFFER)),
        # Halves are rounded up; what rounds to nothing is no value, never 0.
        (DOLLARS, 375, {"offered": Offered(D("10.01"), 750)}, Worth(D("5.01"), Source.OFFER)),
        (DOLLARS, 750, {"paid": Money(D("0.01"), "JPY")}, Worth(None, Source.NONE)),
    ],
)
def test_the_first_source_that_has_a_value_counts(basis: Basis, size: int, known: dict, expected: Worth) -> None:
    assert worth(basis=basis, size_ml=size, **known) == expected


def line(bottle: int, quantity: int, unit: str | None, source: Source = Source.OFFER) -> Line:
    return Line(bottle, quantity, None if unit is None else D(unit), source)


@pytest.mark.parametrize(
    ("before", "after", "rate", "causes"),
    [
        ([line(1, 2, "10")], [line(1, 2, "12")], "1", {"price": D(4)}),
        ([line(1, 3, "10")], [line(1, 1, "12")], "1", {"left": D(-20), "price": D(2)}),
        ([line(1, 1, "10")], [line(1, 3, "12")], "1", {"came": D(24), "price": D(2)}),
        ([], [line(1, 2, "10")], "1", {"came": D(20)}),
        ([line(1, 2, "10")], [], "1", {"left": D(-20)}),
        ([line(1, 2, "10")], [line(1, 2, "11")], "1.1", {"rate": D(2)}),
        ([line(1, 2, "10")], [line(1, 2, "12")], "1.1", {"rate": D(2), "price": D(2)}),
        ([line(1, 1, "10")], [line(1, 3, "11")], "1.1", {"came": D(22), "rate": D(1)}),
        ([line(1, 2, "10")], [line(1, 2, "10")], "1.1", {"rate": D(2), "price": D(-2)}),
        ([line(1, 1, "10", Source.PAID)], [line(1, 1, "15")], "1", {"revalued": D(5)}),
        ([line(1, 1, "10", Source.OWN)], [line(1, 1, "8", Source.OWN)], "1", {"revalued": D(-2)}),
        ([line(1, 1, None, Source.NONE)], [line(1, 1, "8")], "1", {"revalued": D(8)}),
    ],
)
def test_a_change_is_told_by_its_causes(before: list, after: list, rate: str, causes: dict) -> None:
    change = explain(before, after, rate_before=D(1), rate_after=D(rate))
    every = {name: change.of(name) for name in ("price", "rate", "came", "left", "revalued")}
    assert {name: amount for name, amount in every.items() if amount} == causes


LINES = st.dictionaries(
    st.integers(1, 6),
    st.tuples(st.integers(1, 40), st.none() | st.decimals(D("0.01"), 9999, places=2), st.sampled_from(list(Source))),
).map(lambda rows: [Line(id_, *facts) for id_, facts in rows.items()])


@given(LINES, LINES, st.decimals(D("0.1"), 10, places=6))
def test_the_causes_add_up_to_the_difference_to_the_cent(before: list[Line], after: list[Line], rate: Decimal) -> None:
    difference = sum(one.value for one in after) - sum(one.value for one in before)
    change = explain(before, after, rate_before=D(1), rate_after=rate)
    assert change.total == difference
    assert sum(change.of(cause) for cause in ("price", "rate", "came", "left", "revalued")) == difference
