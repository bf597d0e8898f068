"""A price's cell: amount, no price, or refused."""

import pytest

from pricing.catalogues.numbers import NumberStyle
from pricing.catalogues.options import Unit
from pricing.catalogues.prices import InvalidCurrencyError, InvalidPriceError, read_currency, read_price

POINT = NumberStyle(".", ",")
COMMA = NumberStyle(",", ".")


@pytest.mark.parametrize(
    ("text", "style", "currency", "amount"),
    [
        ("154", POINT, "EUR", "154.00"),
        ("154.5", POINT, "EUR", "154.50"),
        ("1,600.00", POINT, "EUR", "1600.00"),
        ("1.600,00", COMMA, "EUR", "1600.00"),
        ("12.500", POINT, "EUR", "12.50"),  # a nought behind the cents is no third decimal
        ("1,500", POINT, "JPY", "1500.00"),
        ("1500.00", POINT, "JPY", "1500.00"),
        ("1.25", POINT, "KWD", "1.25"),
        ("99999999.99", POINT, "EUR", "99999999.99"),
    ],
)
def test_a_price_is_the_amount_with_two_decimals(text, style, currency, amount):
    price = read_price(text, style, currency=currency)
    assert str(price) == amount


@pytest.mark.parametrize(
    "text",
    ["", "  ", "0", "0.00", "0,00", "€ 0.00", "0.00 EUR", "-", "n/a", "null", "POA", "auf Anfrage", "sur demande"],
)
def test_nothing_nought_and_on_request_are_no_price(text):
    assert read_price(text, POINT, currency="EUR") is None


@pytest.mark.parametrize(
    ("text", "currency", "why"),
    [
        ("-12.50", "EUR", "not negative"),
        ("€ -12.50", "EUR", "not negative"),
        ("−12.50", "EUR", "not negative"),
        ("(12.50)", "EUR", "not negative"),
        ("12.50-", "EUR", "not negative"),
        ("12.505", "EUR", "at most 2 decimals"),
        ("1500.50", "JPY", "at most 0 decimals"),
        ("1.255", "KWD", "at most 2 decimals"),  # it has three, and we keep two
        ("100000000.00", "USD", "in USD is at most 99999999.99"),
        ("1000000000000.00", "VND", "at most 999999999999.99"),
        ("9" * 40, "EUR", "at most 999999999999.99"),
        ("1,60.00", "EUR", "not written as"),
        ("12,50", "EUR", "not written as"),
        ("1.600,00", "EUR", "not written as"),
        ("12.50 13.50", "EUR", "not written as"),
        ("from 12.50 to 13.50", "EUR", "no price"),
        ("6 x 12.50", "EUR", "no price"),
        ("1e3", "EUR", "no price"),
        ("twelve", "EUR", "no price"),
        ("٣٤", "EUR", "no price"),
    ],
)
def test_what_is_no_price_for_certain_is_refused(text, currency, why):
    with pytest.raises(InvalidPriceError, match=why):
        read_price(text, POINT, currency=currency)


@pytest.mark.parametrize(
    ("text", "currency", "amount"), [("1550", "EUR", "15.50"), ("1,550", "EUR", "15.50"), ("1550", "JPY", "1550.00")]
)
def test_cents_are_cents_where_the_settings_say_so(text, currency, amount):
    assert str(read_price(text, POINT, currency=currency, unit=Unit.CENTS)) == amount


def test_a_price_in_cents_with_decimals_is_refused():
    with pytest.raises(InvalidPriceError, match="no decimals"):
        read_price("15.50", POINT, currency="EUR", unit=Unit.CENTS)


@pytest.mark.parametrize(
    ("text", "said", "usual", "currency"),
    [
        ("15.00", "EUR", "USD", "EUR"),
        ("15.00", "eur", "", "EUR"),
        ("15.00", "€", "", "EUR"),
        ("15.00 USD", "", "EUR", "USD"),
        ("USD 15.00", "USD", "", "USD"),
        ("15,00 €", "", "", "EUR"),
        ("€15", "EUR", "", "EUR"),
        ("Fr. 15.–", "", "", "CHF"),
        ("15 Kč", "", "", "CZK"),
        ("15 zł", "", "", "PLN"),
        ("US$ 15", "", "", "USD"),
        ("$15", "CAD", "", "CAD"),
        ("$15", "", "AUD", "AUD"),
        ("15 kr", "", "SEK", "SEK"),
        ("€ -15", "", "", "EUR"),
        ("15", "", "GBP", "GBP"),
    ],
)
def test_a_currency_is_the_rows_else_the_cells_else_the_merchants(text, said, usual, currency):
    assert read_currency(text, said=said, usual=usual) == currency


@pytest.mark.parametrize(
    ("text", "said", "usual", "why"),
    [
        ("15 USD", "EUR", "EUR", "another currency"),
        ("€ 15 GBP", "", "", "another currency"),
        ("$15", "EUR", "", "another currency"),
        ("$15", "", "", "several currencies"),
        ("$15", "", "EUR", "several currencies"),
        ("15", "", "", "no currency"),
        ("15", "euro-ish", "EUR", "no currency"),
        ("15 per bottle", "EUR", "EUR", "no currency"),
        ("15", "XAU", "EUR", "no currency"),
    ],
)
def test_a_currency_that_is_none_or_contradicts_is_refused(text, said, usual, why):
    with pytest.raises(InvalidCurrencyError, match=why):
        read_currency(text, said=said, usual=usual)
