"""What a row means: an ask, or a rejection that says why."""

from decimal import Decimal

import pytest

from pricing.catalogues.availability import UnclearAvailabilityError, is_sold
from pricing.catalogues.interpret import interpret, says_currency
from pricing.catalogues.numbers import NumberStyle
from pricing.catalogues.options import FileSettings
from pricing.catalogues.rows import Raw, Rejected
from pricing.matching import Ask
from pricing.sizes import Packing
from pricing.titles import Vintage
from tests.catalogues.files import NOW

COMMA = NumberStyle(",", ".")
EUR = FileSettings(currency="EUR")
ROW = Raw(7, "A-1", "Ch. Montrose", size="75cl", vintage="2016", lwin="1012361", price="1.154,00", availability="ja")


def test_a_row_is_an_ask_for_what_it_describes():
    ask = interpret(ROW, EUR, COMMA, NOW)
    assert isinstance(ask, Ask)
    assert (ask.source_id, ask.price, ask.currency, ask.occurred_at) == ("A-1", Decimal("1154.00"), "EUR", NOW)
    listed = ask.listed
    assert (listed.name, listed.vintage, listed.packing, listed.lwin) == (
        "chateau montrose",
        Vintage(2016),
        Packing(1, 750),
        "1012361",
    )


def test_a_case_stays_a_case():
    ask = interpret(ROW._replace(size="6 x 75cl"), EUR, COMMA, NOW)
    assert ask.listed.packing == Packing(6, 750)


@pytest.mark.parametrize(("said", "packing"), [("", Packing(1, 750)), ("150cl", Packing(1, 1500)), ("rouge", None)])
def test_the_settings_bottle_is_for_rows_that_name_none(said, packing):
    ask = interpret(ROW._replace(size=said), FileSettings(currency="EUR", unsaid_size_ml=750), COMMA, NOW)
    assert ask.listed.packing == packing


@pytest.mark.parametrize("price", ["", "0,00", "POA"])
def test_what_has_no_price_asks_for_nothing(price):
    ask = interpret(ROW._replace(price=price), EUR, COMMA, NOW)
    assert isinstance(ask, Ask)
    assert (ask.price, ask.in_stock) == (None, True)


@pytest.mark.parametrize(("said", "in_stock"), [("", True), ("auf Lager", True), ("ausverkauft", False), ("0", False)])
def test_the_column_of_availability_says_what_is_in_stock(said, in_stock):
    ask = interpret(ROW._replace(availability=said), EUR, COMMA, NOW)
    assert isinstance(ask, Ask)
    assert ask.in_stock is in_stock


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"price": "1,154.00"}, "price"),
        ({"price": "-5"}, "price"),
        ({"price": "15,00 USD", "currency": "EUR"}, "currency"),
        ({"currency": "Taler"}, "currency"),
        ({"availability": "ask us"}, "availability"),
        ({"wine_id": "4417"}, "wine_id"),
        # What is wrong is said also of what is sold out: it will be back.
        ({"price": "twelve", "availability": "0"}, "price"),
    ],
)
def test_what_cannot_be_read_is_rejected_with_line_field_and_id(changes, field):
    rejected = interpret(ROW._replace(**changes), EUR, COMMA, NOW)
    assert isinstance(rejected, Rejected)
    assert (rejected.line, rejected.field, rejected.source_id) == (7, field, "A-1")
    assert rejected.reason.endswith(".")


def test_a_row_without_any_currency_is_rejected_if_the_merchants_is_not_known():
    assert interpret(ROW, FileSettings(), COMMA, NOW).field == "currency"


@pytest.mark.parametrize(
    ("price", "currency", "says"), [("15", "EUR", True), ("15 €", "", True), ("$15", "", True), ("15.00", "", False)]
)
def test_a_price_that_takes_the_merchants_currency_can_be_noted(price, currency, says):
    assert says_currency(ROW._replace(price=price, currency=currency)) is says


def test_whatever_a_title_says_nothing_is_raised():
    ask = interpret(ROW._replace(title="6 bottles or a case 2015 2016", size="", vintage=""), EUR, COMMA, NOW)
    assert ask.listed.unclear


@pytest.mark.parametrize(
    ("text", "sold"),
    [
        *[
            (text, True)
            for text in ("", "in stock", "In_Stock", "in-stock", "yes", "12", "6+", ">10", "3 bottles", "1,0")
        ],
        *[
            (text, True)
            for text in ("auf Lager", "lieferbar", "Verfügbar", "en stock", "Disponible", "preorder", "backorder")
        ],
        *[(text, False) for text in ("out of stock", "OUT_OF_STOCK", "sold out", "no", "0", "-2", "0.0", "0 bottles")],
        *[
            (text, False)
            for text in ("ausverkauft", "nicht verfügbar", "Épuisé", "en rupture de stock", "indisponible")
        ],
    ],
)
def test_whether_a_thing_is_sold_is_read_in_three_languages_and_in_numbers(text, sold):
    assert is_sold(text) is sold


@pytest.mark.parametrize("text", ["ask", "2-3 days", "maybe", "12 of 13"])
def test_a_word_that_is_not_known_is_not_taken_for_yes(text):
    with pytest.raises(UnclearAvailabilityError):
        is_sold(text)
