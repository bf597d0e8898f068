"""Delimited files as merchants send them."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalogues.columns import NAMES, PRICES, TAXED_PRICES
from pricing.catalogues.options import Field, FileSettings, Limits
from pricing.catalogues.rows import LONGEST_ID, LONGEST_TITLE, NO_ID, Raw, Rejected
from tests.catalogues.files import take, whole

FULL = (
    "SKU,Wine name,Bottle size,Vintage,EAN,LWIN,Price,Currency,Stock,Link\n"
    "A-1,Ch. Montrose,75cl,2016,3760123456789,10123612016,154.00,EUR,12,https://shop.example/1\n"
)


def test_every_field_is_found_by_its_name_and_is_the_files_own_text():
    assert whole(FULL) == [
        Raw(
            line=2,
            source_id="A-1",
            title="Ch. Montrose",
            size="75cl",
            vintage="2016",
            gtin="3760123456789",
            lwin="10123612016",
            price="154.00",
            currency="EUR",
            availability="12",
            url="https://shop.example/1",
        )
    ]


@pytest.mark.parametrize(
    "header",
    [
        "Artikelnummer;Bezeichnung;Flascheninhalt;Jahrgang;Preis;Währung;Lagerbestand",
        "Référence;Désignation;Contenance;Millésime;Prix;Devise;Disponibilité",
        "Art.-Nr.;Weinname;Inhalt;Jahr;Preis brutto;Währung;Verfügbar",
        "ref;nom du vin;Format;Année;Prix TTC;monnaie;en stock",
    ],
)
@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_german_and_french_price_lists_are_read_with_any_delimiter(header, delimiter):
    row = "7;Château d'Yquem;0,75 l;2011;230;EUR;5"
    text = f"{header}\n{row}\n".replace(",", "‚").replace(";", delimiter)
    assert whole(text)[0][1:9] == ("7", "Château d'Yquem", "0‚75 l", "2011", "", "", "", "230")


def test_no_name_of_a_column_means_two_fields():
    names = [name for names in NAMES.values() for name in names]
    names += [*PRICES, *(name for group in TAXED_PRICES.values() for name in group)]
    assert len(names) == len(set(names))


def test_quoted_cells_hold_delimiters_quotes_and_lines_and_the_lines_are_still_counted():
    text = 'id,name,price\r\n1,"Le ""Clos"",\r\nrouge",10\r\n\r\n2,b,20\r\n3,c\r\n'
    taken = take(text)
    assert [(row.line, row.title) for row in taken.raw] == [(2, 'Le "Clos",\r\nrouge'), (5, "b")]
    assert taken.rejected == [Rejected(6, "", "It has 2 cells, and the first line 3.", "3")]


def test_lines_of_an_old_mac_are_lines():
    assert [row.line for row in whole("id,name,price\r1,a,10\r2,b,20\r")] == [2, 3]


def test_excels_line_about_the_delimiter_is_not_the_header():
    assert whole("sep=;\nid;name;price\n1;a;10,50\n") == [Raw(3, "1", "a", price="10,50")]


def test_rows_that_are_too_short_or_too_long_are_rejected_with_their_line_and_the_rest_is_taken():
    taken = take("id,name,price\n1,a\n2,b,10\n3,c,10,extra\n4,d,10\n")
    assert [row.source_id for row in taken.raw] == ["2", "4"]
    assert [row.line for row in taken.rejected] == [2, 4]
    assert "4 cells" in taken.rejected[1].reason


def test_a_rejected_row_names_its_thing_which_is_therefore_not_absent_and_its_id_stays_free():
    taken = take("name,id,price\na,1,10,extra\na,1,10\nb\n")
    assert [row.source_id for row in taken.rejected] == ["1", ""]
    assert [row.source_id for row in taken.raw] == ["1"]


def test_an_id_that_comes_again_is_rejected_and_the_first_row_counts():
    taken = take("id,name,price\n1,a,10\n2,b,10\n1,c,11\n")
    assert [row.title for row in taken.raw] == ["a", "b"]
    [twin] = taken.rejected
    assert (twin.line, twin.field, twin.source_id) == (4, "source_id", "1")


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (",a,10", "source_id"),
        (f"{'x' * (LONGEST_ID + 1)},a,10", "source_id"),
        ("1,,10", "title"),
        (f"1,{'x' * (LONGEST_TITLE + 1)},10", "title"),
        (f"1,a,{'1' * 2_001}", "price"),
    ],
)
def test_a_row_that_names_nothing_or_too_much_is_rejected_by_field(row, field):
    taken = take(f"id,name,price\n{row}\n2,b,10\n")
    assert [(each.line, each.field) for each in taken.rejected] == [(2, field)]
    assert [each.source_id for each in taken.raw] == ["2"]


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("id,name,colour", "price"),
        ("id,price,colour", "title"),
        ("a,b,c", "price, title"),
        ("id;name;colour", "price"),
    ],
)
def test_a_file_without_a_needed_column_is_refused_and_told_which(header, missing):
    taken = take(f"{header}\n1,a,red\n")
    assert taken.fault.line == 1
    assert f"no column for: {missing}." in taken.fault.reason


@pytest.mark.parametrize("name", ["wine_id", "LWIN", "GTIN"])
def test_a_number_that_names_the_wine_does_for_a_name(name):
    assert len(whole(f"{name},price\nwn_1,10\n")) == 1


def test_two_columns_that_may_be_the_price_are_not_chosen_between():
    taken = take("id,name,price,unit price\n1,a,120,10\n")
    assert "“price”, “unit price”" in taken.fault.reason
    [row] = whole("id,name,price,unit price\n1,a,120,10\n", columns={"price": "Unit Price"})
    assert row.price == "10"


def test_a_column_that_is_there_twice_is_refused():
    assert "Two columns are called “price”" in take("id,name,Price,price\n1,a,120,10\n").fault.reason


def test_the_tax_basis_chooses_between_prices_with_tax_and_without():
    text = "id;name;Preis netto;Preis brutto\n1;a;100;119\n"
    assert whole(text, tax="included")[0].price == "119"
    assert whole(text, tax="excluded")[0].price == "100"
    assert "may be the price" in take(text).fault.reason


def test_the_merchants_names_of_columns_go_before_the_usual_ones():
    text = "nr,id,was,price\nA,1,Yquem,10\n"
    [row] = whole(text, columns={"source_id": "NR", "title": "was"})
    assert (row.source_id, row.title) == ("A", "Yquem")
    assert "no column “Nummer”" in take(text, columns={"source_id": "Nummer"}).fault.reason


def test_a_delimiter_that_could_be_two_is_asked_for():
    text = "title,price,x|title|price\na,10,y|b|20\n"
    assert "Tell us the delimiter" in take(text).fault.reason
    assert [row.price for row in whole(text, delimiter=",")] == ["10"]
    assert [row.price for row in whole(text, delimiter="|")] == ["20"]


def test_a_producer_is_put_before_a_name_that_lacks_it():
    text = "id,producer,wine,price\n1,Krug,Clos du Mesnil,900\n2,Château Margaux,Château Margaux,500\n3,,Yquem,300\n"
    assert [row.title for row in whole(text)] == ["Krug Clos du Mesnil", "Château Margaux", "Yquem"]


def test_a_pack_is_part_of_the_size():
    text = "id,name,pack size,size,price\n1,a,6,75cl,600\n2,b,1,75cl,100\n3,c,12,,900\n4,d,,75cl,100\n"
    assert [row.size for row in whole(text)] == ["6 x 75cl", "75cl", "12 x bottle", "75cl"]


def test_rows_of_a_file_without_ids_keep_theirs_wherever_they_stand_and_whatever_they_cost():
    tonight = whole("name,size,vintage,price\nMontrose,75cl,2016,154\nMontrose,150cl,2016,320\nYquem,75cl,2011,230\n")
    tomorrow = whole("vintage,name,size,price\n2011,YQUEM ,75cl,240\n2016,Montrose,75cl,150\n2017,Montrose,75cl,99\n")
    ids = [row.source_id for row in tonight]
    assert len(set(ids)) == 3
    assert all(each.startswith(NO_ID) for each in ids)
    assert [row.source_id for row in tomorrow][:2] == [ids[2], ids[0]]
    assert tomorrow[2].source_id not in ids


def test_the_same_row_twice_in_a_file_without_ids_is_a_duplicate():
    taken = take("name,price\nMontrose,154\nmontrose,155\n")
    assert [row.line for row in taken.rejected] == [3]


def test_a_row_with_wrong_quotes_is_rejected_alone():
    taken = take('id,name,price\n1,"a"b,10\n2,b,10\n3,Ch. "Le Pin",10\n')
    assert [(row.line, row.field) for row in taken.rejected] == [(2, "")]
    assert [row.title for row in taken.raw] == ["b", 'Ch. "Le Pin"']


def test_a_quote_that_hides_rows_ends_the_file_and_says_where_it_begins():
    taken = take('id,name,price\n1,a,10\n2,"b,10\n3,c,10\n4,"d",10\n5,e,10\n')
    assert [row.source_id for row in taken.raw] == ["1"]
    assert (taken.fault.line, "line 5" in taken.fault.reason) == (3, True)


def test_a_cell_that_never_ends_is_refused_and_not_kept_in_memory():
    taken = take('id,name,price\n1,a,10\n2,"b,10\n' + "3,c,10\n" * 30_000)
    assert [row.source_id for row in taken.raw] == ["1"]
    assert taken.fault.line == 3


def test_more_rows_than_the_limit_are_not_taken():
    taken = take("id,name,price\n1,a,1\n2,b,1\n3,c,1\n", limits=Limits(text_bytes=1000, inflation=9, rows=2))
    assert [row.source_id for row in taken.raw] == ["1", "2"]
    assert (taken.fault.line, "more than 2 rows" in taken.fault.reason) == (4, True)


# --- Files that were cut off ---------------------------------------------------------------------------------------

CELLS = st.text(st.sampled_from('aé",;\n 1'), max_size=6)


@pytest.mark.parametrize("last", ["price", "name", "id", "size"])
def test_a_file_cut_anywhere_is_noticed_or_gives_whole_rows_alone(last):
    order = [name for name in ("id", "name", "size", "price") if name != last] + [last]
    rows = [
        {"id": "11", "name": '"Le ""Pin"", rouge"', "size": "6 x 75cl", "price": "189.00"},
        {"id": "12", "name": "Château\u00a0d'Yquem", "size": '"75\ncl"', "price": '"1,250.00"'},
        {"id": "13", "name": "Krug", "size": "150cl", "price": "320.50"},
    ]
    data = "\n".join([",".join(order), *(",".join(row[name] for name in order) for row in rows), ""]).encode()
    full = whole(data)
    for end in range(len(",".join(order)) + 1, len(data)):
        taken = take(data[:end])
        assert taken.rows == full[: len(taken.rows)], data[:end]
        at_a_rows_end = data[:end].endswith(b"\n") and data[:end].count(b'"') % 2 == 0
        assert taken.fault or at_a_rows_end, data[:end]
        if taken.fault:
            assert taken.fault.line >= 2
        assert take(gzip.compress(data)[: end - len(data)]).fault


def test_a_last_column_that_cannot_mislead_needs_no_line_end():
    text = "id,name,price,url\n1,a,10,https://shop.example/1"
    assert len(whole(text)) == 1


def test_a_merchant_may_say_that_its_files_have_no_line_end():
    text = "id,name,price\n1,a,10\n2,b,18"
    taken = take(text)
    assert [row.source_id for row in taken.raw] == ["1"]
    assert (taken.fault.line, "without a line end" in taken.fault.reason) == (3, True)
    assert [row.price for row in whole(text, open_end=True)] == ["10", "18"]
    assert "cut off" in take("id,name,price\n1,a,10\n2,b", open_end=True).fault.reason


# --- A sale's price ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sale", "dates", "price"),
    [
        ("", "", "15.00"),
        ("0.00", "", "15.00"),
        ("12.00", "", "12.00"),
        ("12.00", "2030-05-17T09:00Z/2030-05-18T09:00Z", "12.00"),
        ("12.00", "2030-05-17T11:30+0200/2030-05-18", "12.00"),
        ("12.00", "2030-05-17T11:31+02:00/2030-05-18", "15.00"),
        ("12.00", "2030-05-10 / 2030-05-17", "12.00"),  # a day without a time is the whole of it
        ("12.00", "2030-05-10/2030-05-16", "15.00"),
        ("12.00", "2030-05-10T00:00/2030-05-17T09:30", "15.00"),  # it ends now
        ("", "nonsense", "15.00"),
    ],
)
def test_a_sales_price_counts_within_its_dates_alone(sale, dates, price):
    [row] = whole(f"id,title,price,sale_price,sale_price_effective_date\n1,a,15.00,{sale},{dates}\n")
    assert row.price == price


@pytest.mark.parametrize("dates", ["soon", "2030-05-17", "2030-05-18/2030-05-10", "2030-02-30/2030-05-17", "a/b/c"])
def test_dates_that_are_none_reject_the_row_that_needs_them(dates):
    taken = take(f"id,title,price,sale_price,sale_price_effective_date\n1,a,15.00,12.00,{dates}\n")
    assert [(row.field, row.source_id) for row in taken.rejected] == [("sale_dates", "1")]


# --- Settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"format": "excel"},
        {"currency": "EURO"},
        {"decimal_sign": "'"},
        {"delimiter": "x"},
        {"encoding": "rot13"},
        {"unit": "pence"},
        {"tax": "some"},
        {"columns": {"prise": "Price"}},
        {"unsaid_size_ml": 0},
    ],
)
def test_a_setting_that_means_nothing_is_refused_by_name(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        FileSettings(**settings)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_whatever_is_written_as_csv_is_read_as_it_was(pairs):
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, delimiter=";")
    writer.writerow(["id", "name", "currency", "price"])
    writer.writerows([str(number), name, other, "1"] for number, (name, other) in enumerate(pairs))
    taken = take(out.getvalue())
    assert taken.fault is None
    by_id = {row.source_id: row for row in taken.raw}
    for number, (name, other) in enumerate(pairs):
        if name.strip():
            assert (by_id[str(number)].title, by_id[str(number)].currency) == (name.strip(), other.strip())


def test_every_field_that_a_column_can_be_has_names():
    assert set(NAMES) | {Field.PRICE} == set(Field)
