"""Files of bottles: what is read, rejected with its line, or refused as a whole; and our own round trip."""

import csv
import io
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cellars.exports import BOTTLES, CONSUMED, INVENTORY, LIST, PURCHASE, Row, browser, inventory, tabs, text
from winecellar.cellars.files import ours
from winecellar.cellars.files.lots import AbsurdFileError, Facts, Lot, Reading
from winecellar.cellars.files.reader import read_file
from winecellar.cellars.files.table import UnreadableFileError

D = Decimal


def read(content: bytes, *, decimal_sign: str = "") -> Reading:
    return read_file(content, decimal_sign=decimal_sign, most=100_000, most_per_row=1_200, mean=60)


def only(content: bytes) -> Facts:
    (lot,) = read(content).held
    return lot.facts


# --- CellarTracker's tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "bottles", "pending", "consumed"),
    [
        (inventory("1", "2", "3"), 3, 0, 0),
        (tabs(INVENTORY, {}, {"Barcode": "2", "Location": "(pending)"}), 1, 1, 0),
        (tabs(LIST, {}), 3, 2, 0),
        (tabs(LIST, {"Quantity": "0", "Pending": "3"}), 0, 3, 0),
        (tabs(BOTTLES, {}, {}, {"BottleState": "0"}, {"BottleState": "-1"}), 2, 1, 1),
        (tabs(PURCHASE, {}, {"iPurchase": "901", "Delivered": "False"}), 3, 3, 3),
        (tabs(CONSUMED, {}, {"iConsumed": "6"}), 0, 0, 2),
        (tabs(LIST), 0, 0, 0),
    ],
)
def test_only_what_lies_in_the_cellar_is_held(content: bytes, bottles: int, pending: int, consumed: int) -> None:
    reading = read(content)
    assert (reading.bottles, reading.pending, reading.consumed) == (bottles, pending, consumed)
    assert reading.rejected == []


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, {"vintage": 2016, "non_vintage": False, "size_ml": 750, "location": "Cellar", "bin": "", "store": ""}),
        ({}, {"paid": D("18.00"), "paid_currency": "EUR", "purchased_on": date(2020, 5, 25), "colour": "red"}),
        ({}, {"region": "St. Estèphe, Bordeaux", "country": "France", "drink_from": 2026, "drink_until": 2050}),
        ({"Vintage": "1001"}, {"vintage": None, "non_vintage": True}),
        ({"Vintage": "9999"}, {"vintage": None, "non_vintage": False}),
        ({"Vintage": "Unknown"}, {"vintage": None, "non_vintage": False}),
        ({"NativePrice": "0"}, {"paid": None, "paid_currency": ""}),
        ({"NativePrice": "", "NativePriceCurrency": "EUR"}, {"paid": None, "paid_currency": ""}),
        ({"PurchaseDate": ""}, {"purchased_on": None}),
        ({"BeginConsume": "9999", "EndConsume": ""}, {"drink_from": None, "drink_until": None}),
        ({"Location": "(n/a)", "Appellation": "Unknown"}, {"location": "", "region": "Bordeaux"}),
        ({"Size": "375ml"}, {"size_ml": 375}),
        ({"Size": "1.5L"}, {"size_ml": 1500}),
        ({"Size": "3.0L"}, {"size_ml": 3000}),
        ({"Type": "White - Sweet/Dessert"}, {"colour": "sweet"}),
        ({"Type": "Rosé - Sparkling"}, {"colour": "sparkling"}),
        ({"Type": "Rosé"}, {"colour": "rose"}),
        ({"Type": "Spirits"}, {"colour": ""}),
        ({"Wine": "  Krug Grande Cuvée "}, {"name": "Krug Grande Cuvée"}),
    ],
)
def test_its_words_for_nothing_sizes_and_dates_are_understood(cells: Row, expected: dict[str, Any]) -> None:
    facts = only(tabs(INVENTORY, cells))
    assert {name: getattr(facts, name) for name in expected} == expected


def test_my_own_value_in_a_list_is_one() -> None:
    facts = only(tabs(LIST, {"MyValue": "99.5"}))
    assert (facts.own_value, facts.own_currency) == (D("99.50"), "EUR")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"Vintage": "16"}, "vintage"),
        ({"Size": "75"}, "size"),
        ({"Size": "6x750ml"}, "pack"),
        ({"Wine": ""}, "Wine"),
        ({"Wine": "x" * 201}, "more than 200"),
        ({"PurchaseDate": "25/5/2020"}, "month/day/year"),
        ({"PurchaseDate": "2/30/2020"}, "PurchaseDate"),
        ({"EndConsume": "204"}, "drink until"),
        ({"BeginConsume": "2050", "EndConsume": "2026"}, "before"),
        ({"NativePriceCurrency": "EURO"}, "currency"),
        ({"NativePrice": "cheap"}, "NativePrice"),
        ({"NativePrice": "-5"}, "NativePrice"),
        ({"NativePrice": "999999999.00"}, "NativePrice"),
        ({"Barcode": "1"}, "twice"),
    ],
)
def test_a_row_that_cannot_be_taken_is_rejected_with_its_line_and_the_others_are_taken(cells: Row, reason: str) -> None:
    reading = read(tabs(INVENTORY, {"Barcode": "1"}, {"Barcode": "2", **cells}, {"Barcode": "3"}))
    (rejected,) = reading.rejected
    assert rejected.line == 3
    assert reason in rejected.reason
    assert reading.bottles == 2


def test_lines_are_counted_right_behind_a_cell_with_line_ends() -> None:
    content = text(INVENTORY, [{"BottleNote": "one\ntwo\r\nthree"}, {"Barcode": "2", "Size": "?"}], delimiter=",")
    reading = read(content.encode())
    assert [row.line for row in reading.rejected] == [5]
    assert reading.held[0].facts.note == "one\ntwo\r\nthree"


def test_a_quotation_mark_in_a_file_of_tabs_is_only_one() -> None:
    content = inventory("1", "2").decode().replace("Château Montrose\tFrance", '"Le Grand\tFrance', 1)
    reading = read(content.encode())
    assert {lot.facts.name for lot in reading.held} == {'"Le Grand', "Château Montrose"}


@pytest.mark.parametrize(
    "content",
    [
        browser(INVENTORY, {}),
        text(INVENTORY, [{}], delimiter=",").encode("utf-8-sig"),
        text(INVENTORY, [{}], delimiter=";").encode(),
        text(INVENTORY, [{}]).encode("utf-16"),
    ],
    ids=["cp1252", "utf-8 with a mark", "semicolons", "utf-16"],
)
def test_every_encoding_that_people_save_in_is_read(content: bytes) -> None:
    assert only(content).name == "Château Montrose"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html><body>You are not signed in.</body></html>", "web page"),
        (b"\n  <!DOCTYPE html><p>", "web page"),
        (b"", "empty"),
        (b"\xef\xbb\xbf\n", "empty"),
        (b"PK\x03\x04\x00\x00\t,", "text"),
        (b"\xff\xd8\xff\xe0\x81\x8d,", "UTF-8"),
        (b"a,b\n1,2", "CellarTracker"),
        (b"iWine\tNote\n1\tx", "no bottles"),
        (b"iWine\tBarcode\tWine\n1\t2\tx", "Vintage, Size, Location"),
        (b"just words", "columns"),
        (b"Winecellar keys,Quantity\nwc:1,2", "lacks"),
    ],
)
def test_what_is_no_such_file_is_refused_in_words(content: bytes, words: str) -> None:
    with pytest.raises(UnreadableFileError, match=words):
        read(content)


def test_a_file_cut_anywhere_in_its_last_row_is_never_taken_for_whole() -> None:
    """Refused, or the cut row rejected; a cut behind the last row's last sign is the whole file."""
    whole = inventory("1", "2")
    begins = whole.rindex(b"11\t2\t") + 1
    for end in range(begins, len(whole)):
        try:
            reading = read(whole[:end])
        except UnreadableFileError as error:
            assert "line 3" in str(error).lower()
        else:
            # The last cell holds a year: a part of one is none. Only an empty one could be whole.
            assert [row.line for row in reading.rejected] == [3] or whole[:end].endswith(b"\t"), whole[end - 9 : end]


def test_a_quoted_file_cut_inside_quotes_is_refused() -> None:
    content = text(INVENTORY, [{"BottleNote": "a, b"}, {"Barcode": "2", "BottleNote": "c, d"}], delimiter=",")
    with pytest.raises(UnreadableFileError, match="cut"):
        read(content[: content.rindex("c, d") + 2].encode())


def test_a_column_with_decimal_commas_is_read_as_one_column() -> None:
    prices = ["11,0007", "21001,2291", "295,14", "1350,079", "140,137"]
    rows = [{"Barcode": str(n), "iWine": str(n), "NativePrice": price} for n, price in enumerate(prices)]
    reading = read(tabs(INVENTORY, *rows))
    expected = ["11.00", "21001.23", "295.14", "1350.08", "140.14"]
    assert [lot.facts.paid for lot in reading.held] == [D(amount) for amount in expected]
    thousands = tabs(INVENTORY, {"NativePrice": "8,750"}, {"Barcode": "2", "NativePrice": "16,000.00"})
    assert [lot.facts.paid for lot in read(thousands).held] == [D(8750), D(16000)]


def test_a_price_that_can_be_read_in_two_ways_is_asked_about_and_never_guessed() -> None:
    content = tabs(INVENTORY, {"NativePrice": "8,750"})
    with pytest.raises(UnreadableFileError, match="8,750"):
        read(content)
    assert read(content, decimal_sign=",").held[0].facts.paid == D("8.75")
    assert read(content, decimal_sign=".").held[0].facts.paid == D("8750.00")


def test_absurd_totals_are_refused_before_anything_else_happens() -> None:
    """A column of prices taken for the quantity: 269 rows that would make 450,381 bottles."""
    rows = [{"iWine": str(n), "Quantity": "1199" if n % 2 else "75"} for n in range(269)]
    with pytest.raises(AbsurdFileError, match=r"269 rows would make .* at most 100,000"):
        read(tabs(LIST, *rows))
    rows = [{"iWine": str(n), "Quantity": "61"} for n in range(269)]
    with pytest.raises(AbsurdFileError, match="269 rows would make 16,409 bottles, more than 60 in each row"):
        read(tabs(LIST, *rows))
    assert [row.line for row in read(tabs(LIST, {"Quantity": "1674"}, {"iWine": "12"})).rejected] == [2]


# --- Our own file ----------------------------------------------------------------------------------------------

MEANT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("=+-@'\t\n"), max_size=30).map(
    str.strip
)
TRICKY = MEANT | st.sampled_from(["=1+1", "'=x", "''-y", "@a", "+3", "a\nb", 'say "x"', "x;y,z", "unknown", "＝1"])
AMOUNTS = st.decimals(D("0.01"), D("99999999.99"), places=2)
YEARS = st.none() | st.integers(1800, 2099)


@st.composite
def lots(draw: st.DrawFn) -> Lot:
    year, nv = draw(st.sampled_from([(2016, False), (1899, False), (None, True), (None, False)]))
    window = sorted(one for one in (draw(YEARS), draw(YEARS)) if one)
    paid, own = draw(st.none() | AMOUNTS), draw(st.none() | AMOUNTS)
    facts = Facts(
        name=draw(TRICKY.filter(bool)),
        producer=draw(TRICKY),
        vintage=year,
        non_vintage=nv,
        size_ml=draw(st.sampled_from([187, 750, 1500, 30_000])),
        colour=draw(st.sampled_from(["", "red", "fortified"])),
        country=draw(TRICKY),
        region=draw(TRICKY),
        paid=paid,
        paid_currency="CHF" if paid else "",
        purchased_on=draw(st.none() | st.dates()),
        store=draw(TRICKY),
        location=draw(TRICKY),
        bin=draw(TRICKY),
        drink_from=window[0] if window else None,
        drink_until=window[1] if len(window) > 1 else None,
        note=draw(TRICKY),
        own_value=own,
        own_currency="JPY" if own else "",
        source_wine=draw(st.sampled_from(["", "ct:11"])),
        wine_id=draw(st.sampled_from(["", "wn_4417"])),
    )
    return Lot(facts, draw(st.integers(1, 1200)), [draw(st.sampled_from(["wc:1", "inventory:0 1%20", "list:ct|7#1"]))])


@given(st.lists(lots(), max_size=6))
def test_our_own_file_reads_again_as_what_was_written(held: list[Lot]) -> None:
    for number, lot in enumerate(held):
        lot.keys = [f"{key}-{number}" for key in lot.keys]
    content = "".join(ours.write(held))
    reading = read_file(content.encode(), decimal_sign="", most=10**9, most_per_row=1_200, mean=1_200)
    assert reading.rejected == []
    assert reading.held == held


@given(st.lists(lots(), min_size=1, max_size=3))
def test_no_cell_of_our_file_is_a_formula(held: list[Lot]) -> None:
    for row in csv.reader(io.StringIO("".join(ours.write(held)).removeprefix("\ufeff"), newline="")):
        assert not [cell for cell in row if cell[:1] in {"=", "+", "-", "@", "\t", "\r", "\n"}]


@given(TRICKY | st.text())
def test_an_apostrophe_that_guards_a_cell_comes_off_again(cell: str) -> None:
    assert ours.plain(ours.safe(cell)) == cell


def test_a_file_of_ours_with_rows_spoilt_in_a_spreadsheet_says_which() -> None:
    held = [Lot(Facts("A", purchased_on=date(2020, 1, 2)), 2, [f"wc:{n}"]) for n in range(4)]
    content = "".join(ours.write(held)).replace("2020-01-02", "02.01.2020", 1).replace("wc:2,2", "wc:1,2")
    reading = read(content.encode())
    assert [(row.line, row.reason[:12]) for row in reading.rejected] == [(2, "Purchased on"), (4, "These bottle")]
    assert reading.bottles == 4
