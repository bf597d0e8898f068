"""How a column's numbers are written: found out for certain, or asked for."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pricing.catalogues.errors import UnclearNumbersError
from pricing.catalogues.numbers import NumberColumn, NumberStyle, detect_numbers
from pricing.catalogues.prices import InvalidPriceError, read_price

NBSP, NARROW = "\u00a0", "\u202f"


@pytest.mark.parametrize(
    ("column", "amounts"),
    [
        (["12.50"], ["12.50"]),
        (["12,50"], ["12.50"]),
        (["12", "1500"], ["12", "1500"]),
        # Each alone says nothing; beside the others it does.
        (["8,750", "16,000.00"], ["8750", "16000"]),
        (["8.750", "16.000,00"], ["8750", "16000"]),
        (["140,137", "295,14", "0,5"], [None, "295.14", "0.5"]),
        (["1,234", "5,678,901"], ["1234", "5678901"]),
        (["1 234", "12,50"], ["1234", "12.50"]),
        ([f"1{NBSP}234,50", f"2{NARROW}000,00"], ["1234.50", "2000"]),
        (["1'234.50", "1’234.50"], ["1234.50", "1234.50"]),
        (["1.234,-", "99,-"], ["1234", "99"]),
        (["CHF 12.–", "CHF 8.50"], ["12", "8.50"]),
        (["€ 1.250,00", "900,00 €"], ["1250", "900"]),
        (["15.00 USD", "1,500.00 USD"], ["15", "1500"]),
        ([".50", "1.25"], ["0.50", "1.25"]),
        # A nought does not begin a number of thousands.
        (["0,750", "12"], [None, "12"]),
        # Four digits before the sign are no group of three.
        (["1350,079", "7,5"], [None, "7.5"]),
        # What is no number says nothing about the others.
        (["on request", "n/a", "1.2.3", "12,50"], [None, None, None, "12.50"]),
    ],
)
def test_a_column_is_read_in_the_one_way_that_fits_all_its_cells(column, amounts):
    style = detect_numbers(column)
    for text, amount in zip(column, amounts, strict=True):
        if amount is not None:
            assert read_price(text, style, currency="EUR") == Decimal(amount)


def test_a_cellars_export_with_four_decimals_has_decimal_commas():
    """Field note 25: all with a decimal comma, though two of them look like thousands."""
    style = detect_numbers(["11,0007", "21001,2291", "295,14", "1350,079", "140,137"])
    assert style == NumberStyle(",", "")
    assert read_price("295,14", style, currency="EUR") == Decimal("295.14")
    with pytest.raises(InvalidPriceError, match="at most 2 decimals"):
        read_price("11,0007", style, currency="EUR")


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (["8,750"], ("8,750",)),
        (["1.000", "2.500", "900"], ("1.000",)),
        (["12", "€ 1,250"], ("€ 1,250",)),
    ],
)
def test_what_can_be_read_in_two_ways_is_asked_for_and_never_guessed(column, cells):
    with pytest.raises(UnclearNumbersError, match="Tell us the decimal sign") as caught:
        detect_numbers(column)
    assert caught.value.cells == cells
    assert cells[0] in str(caught.value)


def test_a_sign_that_no_cell_had_is_not_made_up():
    assert detect_numbers(["12", "1500"]) == NumberStyle("", "")
    assert detect_numbers(["12", "1 500"]) == NumberStyle("", " ")
    assert detect_numbers(["12.50"]) == NumberStyle(".", "")


@pytest.mark.parametrize("column", [["12.50", "99", "12,50"], ["1,234,567", "11,0007"], ["1.234,5", "1,234.5"]])
def test_a_column_in_two_styles_is_refused_with_cells_that_show_it(column):
    with pytest.raises(UnclearNumbersError, match="more than one way") as caught:
        detect_numbers(column)
    assert set(caught.value.cells) <= set(column)
    assert len(caught.value.cells) == 2


@pytest.mark.parametrize(("sign", "amount"), [(",", "8.75"), (".", "8750")])
def test_a_merchants_setting_decides_what_its_cells_leave_open(sign, amount):
    assert read_price("8,750", NumberStyle.of_setting(sign), currency="EUR") == Decimal(amount)


def test_with_a_setting_a_cell_in_another_style_is_wrong_and_not_read_otherwise():
    with pytest.raises(InvalidPriceError, match="not written as"):
        read_price("12.50", NumberStyle.of_setting(","), currency="EUR")
    with pytest.raises(InvalidPriceError, match="not written as"):
        read_price("12.5", detect_numbers(["12", "1500"]), currency="EUR")


def written(amount: Decimal, style: NumberStyle, places: int | None) -> str:
    """An amount as a program writes it that keeps to a style; with `places`, always as many decimals."""
    text = f"{amount:,.{places}f}" if places is not None else f"{amount.normalize():,f}"
    return text.translate({ord(","): style.thousands, ord("."): style.decimal})


STYLES = [NumberStyle(sign, between) for sign in ".," for between in ("", ",", ".", " ", "'", NBSP) if between != sign]
AMOUNTS = st.lists(st.decimals("0.01", "9999999.99", places=2, allow_nan=False), min_size=1, max_size=12)


@given(AMOUNTS, st.sampled_from(STYLES), st.sampled_from([None, 0, 1, 2, 3, 4]), st.sampled_from(["", "€ ", "CHF "]))
@example([Decimal(8750), Decimal(16000)], NumberStyle(".", ","), 0, "")
@example([Decimal("0.75")], NumberStyle(",", "."), 3, "")
def test_whatever_a_column_is_written_like_it_is_read_as_it_was_meant_or_asked_for(amounts, style, places, sign):
    if places in (0, 1):
        amounts = [amount.quantize(Decimal(1).scaleb(-places)) for amount in amounts]
    column = [sign + written(amount, style, places) for amount in amounts]
    try:
        found = detect_numbers(column)
    except UnclearNumbersError:
        return
    assert [read_price(text, found, currency="CHF") or 0 for text in column] == amounts


@given(AMOUNTS, st.sampled_from(STYLES))
def test_a_column_with_cents_and_a_price_below_a_thousand_is_never_asked_about(amounts, style):
    column = [written(amount, style, 2) for amount in [*amounts, Decimal("12.34")]]
    assert detect_numbers(column).decimal == style.decimal


@given(AMOUNTS, st.randoms(use_true_random=False))
def test_a_column_fed_in_parts_and_in_any_order_says_the_same(amounts, random):
    column = [written(amount, NumberStyle(",", "."), 2) for amount in amounts]
    shuffled = random.sample(column, len(column))
    parts = NumberColumn()
    for text in shuffled:
        parts.feed([text])
    assert parts.style() == detect_numbers(column)


def test_a_column_of_very_many_shapes_is_still_wholly_considered():
    column = NumberColumn()
    column.feed(["8,750"])
    column.feed("x" * length + " 12" for length in range(10_000))
    with pytest.raises(UnclearNumbersError):
        column.style()
    column.feed(["9,5"])
    assert column.style() == NumberStyle(",", "")
