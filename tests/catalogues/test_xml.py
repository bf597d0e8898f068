"""Product lists in XML: Google's, Wine-Searcher's, Vivino's, and what is sent by those who mean harm."""

import tracemalloc

import pytest

from pricing.catalogues import google, wine_searcher, xml_rows
from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import FileSettings
from pricing.catalogues.rows import NO_ID, Raw
from pricing.catalogues.stream import Text
from tests.catalogues.files import NOW, take, whole

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<!-- tonight's list -->
<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0">
<channel>
<title>Our shop</title><link>https://shop.example</link>
{}
</channel>
</rss>
"""
ITEM = """<item>
  <g:id>7</g:id><title>Ch. Montrose 2016</title><link>https://shop.example/7</link>
  <g:shipping><g:country>DE</g:country><g:price>4.90 EUR</g:price></g:shipping>
  <g:price>154.00 EUR</g:price><g:availability>in_stock</g:availability>
  <g:gtin>3760123456789</g:gtin><g:size>75cl</g:size>
  <g:installment><g:months>3</g:months><g:amount>51 EUR</g:amount></g:installment>
</item>"""
ATOM = """<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:goods="http://base.google.com/ns/1.0">
<title>Our shop</title><id>tag:shop.example,2030:all</id>
<entry><title>Yquem &amp; <![CDATA[<Sauternes>]]> 2011</title><link href="https://shop.example/8"/>
<id>tag:shop.example,2030:8</id><goods:id>8</goods:id><goods:price>230 EUR</goods:price></entry>
</feed>"""


def test_googles_rss_is_read_and_a_price_of_shipping_is_none_of_the_wine():
    taken = take(RSS.format(ITEM))
    assert taken.format == "google-xml"
    assert taken.rows == [
        Raw(
            line=6,
            source_id="7",
            title="Ch. Montrose 2016",
            size="75cl",
            gtin="3760123456789",
            price="154.00 EUR",
            availability="in_stock",
            url="https://shop.example/7",
        )
    ]


def test_googles_atom_is_read_whatever_its_prefix_and_its_own_id_goes_before_atoms():
    [row] = whole(ATOM)
    assert row == Raw(4, "8", "Yquem & <Sauternes> 2011", price="230 EUR", url="https://shop.example/8")


def test_a_sales_price_in_xml_counts_within_its_dates():
    sale = "<g:sale_price>120 EUR</g:sale_price><g:sale_price_effective_date>{}</g:sale_price_effective_date></item>"
    now, over = "2030-05-17T09:00Z/2030-05-18T09:00Z", "2030-05-16T09:00Z/2030-05-17T09:00Z"
    assert whole(RSS.format(ITEM.replace("</item>", sale.format(now))))[0].price == "120 EUR"
    assert whole(RSS.format(ITEM.replace("</item>", sale.format(over))))[0].price == "154.00 EUR"
    assert take(RSS.format(ITEM.replace("</item>", sale.format("soon")))).rejected[0].field == "sale_dates"


def test_a_product_with_two_prices_is_rejected_and_one_that_repeats_its_price_is_not():
    assert take(RSS.format(ITEM.replace("</item>", "<g:price>99 EUR</g:price></item>"))).rejected[0].field == "price"
    assert len(whole(RSS.format(ITEM.replace("</item>", "<g:price>154.00 EUR</g:price></item>")))) == 1


def test_googles_text_with_tabs_is_read_with_its_own_names():
    taken = take(
        "id\ttitle\tdescription\tlink\timage_link\tprice\tsale price\tavailability\tshipping(country:price)\tgtin\n"
        "7\tCh. Montrose 2016\tThe name of nothing\thttps://shop.example/7\thttps://i.example\t15.00 USD\t\t"
        "in stock\tUS:5.00 USD\t3760123456789\n"
    )
    assert taken.format == "google-text"
    [row] = taken.raw
    assert (row.title, row.price, row.gtin, row.url) == (
        "Ch. Montrose 2016",
        "15.00 USD",
        "3760123456789",
        "https://shop.example/7",
    )


# --- Wine-Searcher and Vivino ---------------------------------------------------------------------------------------

WS_XML = """<?xml version="1.0" encoding="UTF-8"?><wine-searcher-datafeed><product-list>
<row><name><![CDATA[Château Montrose, St-Estèphe]]></name><tax>IB</tax><price>924.00</price><vintage>2016</vintage>
<unit-size>6 x 75cl</unit-size><url>https://shop.example/7?a=1&amp;b=2</url><LWIN>1012361</LWIN></row>
<row><SKU>B2</SKU><WineName>Yquem</WineName><Price>230.00</Price><Vintage>nv</Vintage><Unit_size>75cl</Unit_size>
<Deeplink>https://shop.example/8</Deeplink></row>
</product-list></wine-searcher-datafeed>"""


def test_wine_searchers_xml_is_read_with_the_names_of_its_page_and_those_of_plugins():
    taken = take(WS_XML)
    assert taken.format == "wine-searcher-xml"
    first, second = taken.raw
    assert first.source_id.startswith(NO_ID)
    assert first[2:] == (
        *("Château Montrose, St-Estèphe", "6 x 75cl", "2016", "", "1012361", "", "924.00", "", ""),
        "https://shop.example/7?a=1&b=2",
    )
    assert second == Raw(4, "B2", "Yquem", size="75cl", vintage="nv", price="230.00", url="https://shop.example/8")


WS_ROW = "A1|Ch. Montrose|Slightly damaged label|2016|6 x 75cl|924.00|3|https://shop.example/7|1|Ex. tax|retail|1 day||"


def test_wine_searchers_text_is_read_with_its_names_and_without():
    row = Raw(
        2, "A1", "Ch. Montrose", "6 x 75cl", "2016", price="924.00", availability="3", url="https://shop.example/7"
    )
    assert whole(f"{wine_searcher.ORDER}\n{WS_ROW}\n", format="wine-searcher-text") == [row]
    assert whole(f"{wine_searcher.ORDER}\n{WS_ROW}\n") == [row]
    bare = f"{WS_ROW}\n{WS_ROW.replace('A1', 'A2')}\n"
    taken = take(bare, format="wine-searcher-text")
    assert [(each.line, each.source_id) for each in taken.raw] == [(1, "A1"), (2, "A2")]
    assert take(bare, name="Wine-Searcher_feed.txt").raw == taken.raw
    assert "does not name its columns" in take(bare, name="feed.txt").fault.reason


VIVINO = """<vivino-product-list><meta-data><feed-generation-date>2030-05-17</feed-generation-date></meta-data>
<product><product-name>Krug Grande Cuvée NV</product-name><price>189.00</price>
<quantity-is-minimum>false</quantity-is-minimum><bottle_size>750 ml</bottle_size><bottle_quantity>1</bottle_quantity>
<inventory-count>4</inventory-count><link>https://shop.example/k</link><product-id>9</product-id>
<extras><vintage>NV</vintage><ean>3760123456789</ean><producer>Krug</producer></extras></product>
<product><product-name>Yquem 2011</product-name><price>1380.00</price><bottles size="750ml">6</bottles>
<inventory_count>0</inventory_count><extra><product-id>10</product-id></extra></product>
</vivino-product-list>"""


def test_vivinos_list_is_read_with_its_extras_and_both_ways_to_write_bottles():
    taken = take(VIVINO)
    assert taken.format == "vivino-xml"
    assert taken.raw == [
        Raw(
            line=2,
            source_id="9",
            title="Krug Grande Cuvée NV",
            size="750 ml",
            vintage="NV",
            gtin="3760123456789",
            price="189.00",
            availability="4",
            url="https://shop.example/k",
        ),
        Raw(6, "10", "Yquem 2011", size="6 x 750ml", price="1380.00", availability="0"),
    ]


# --- Harm and damage ------------------------------------------------------------------------------------------------

ENTITIES = '<!DOCTYPE rss [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "declaration",
    [
        ENTITIES,
        '<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE rss SYSTEM "http://127.0.0.1:1/rss.dtd">',
        "<!DOCTYPE rss>",
    ],
)
@pytest.mark.parametrize("format", ["", "google-xml"])
def test_a_document_type_is_refused_where_it_begins(declaration, format):
    taken = take(RSS.format(ITEM).replace("<rss", f"{declaration}\n<rss"), format=format)
    assert taken.rows == []
    assert (taken.fault.line, "document type" in taken.fault.reason) == (3, True)


def test_an_entity_that_is_not_xmls_own_is_refused():
    taken = take(RSS.format(ITEM + ITEM.replace("<g:id>7", "<g:id>8").replace("Ch.", "&nbsp;")))
    assert [row.source_id for row in taken.raw] == ["7"]
    assert "undefined entity" in taken.fault.reason


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("<a>" * 40, "nest more than"),
        ("<item>" + "<a>" * 40, "nest more than"),
        ("<item><g:size>" + "x" * 200_000, "100,000 characters"),
        ("<item><a b='" + "x" * 2_000_000, "1,000,000 bytes"),
        ("<!--" + "x" * 2_000_000, "1,000,000 bytes"),
        ("".join(f"<a{number}/>" for number in range(2_000)), "1,000 different names"),
        ("".join(f"<a b{number}=''/>" for number in range(2_000)), "1,000 different names"),
        ("".join(f"<a xmlns:b{number}='x'/>" for number in range(2_000)), "1,000 different names"),
        (f"<{'a' * 300}/>", "200 characters"),
        ("<item><g:price>1</item>", "not well-formed"),
        ("<item><q:price>1</q:price></item>", "not declared"),
    ],
)
def test_what_is_no_price_list_is_refused_before_it_costs_anything(inside, why):
    taken = take(RSS.format(ITEM + inside))
    assert [row.source_id for row in taken.raw] == ["7"]
    assert why in taken.fault.reason
    assert taken.fault.line > 6


def test_xml_cut_anywhere_is_noticed_after_whole_products():
    data = RSS.format(ITEM + ITEM.replace("<g:id>7", "<g:id>8")).encode()
    full = whole(data)
    begin = data.index(b"<channel>")
    for end in range(begin, len(data.rstrip())):
        taken = take(data[:end])
        assert taken.fault is not None, data[:end]
        assert taken.fault.line >= 1
        assert taken.rows == full[: len(taken.rows)]
    assert "cut off" in take(data[: len(data) - 30]).fault.reason


def test_something_after_the_root_is_refused_and_the_products_stand():
    taken = take(RSS.format(ITEM) + "<p>Warning: something</p>")
    assert len(taken.raw) == 1
    assert "not well-formed" in taken.fault.reason


@pytest.mark.parametrize("said", ["iso-8859-1", "UTF-8", "windows-1252"])
def test_xml_in_another_encoding_is_read_as_it_says_and_utf_8_as_what_it_is(said):
    text = RSS.replace("UTF-8", said).format(ITEM.replace("Montrose", "Château"))
    for real in {said, "utf-8"}:
        assert whole(text.encode(real))[0].title == "Ch. Château 2016"
    assert whole(text.encode("utf-16"))[0].title == "Ch. Château 2016"


def test_xml_that_names_an_encoding_beyond_the_western_is_believed():
    text = RSS.replace("UTF-8", "windows-1251").format(ITEM.replace("Montrose", "Абрау-Дюрсо"))
    assert whole(text.encode("cp1251"))[0].title == "Ch. Абрау-Дюрсо 2016"


def test_memory_does_not_grow_with_the_products():
    def pieces(number):
        yield RSS.partition("{}")[0]
        for _ in range(number):
            yield ITEM * 20 + "<other><deep>text</deep></other>" * 20

    def peak(number):
        text = Text(pieces(number))
        count = 0
        tracemalloc.start()
        with pytest.raises(UnreadableFileError, match="cut off"):
            for _ in google.read_xml(text, FileSettings(), NOW):
                count += 1
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count >= number * 20
        return size

    assert peak(400) < peak(100) + 200_000


def test_memory_does_not_grow_with_one_endless_product():
    def pieces(number):
        yield "<rss><channel><item>"
        for _ in range(number):
            yield "<made-up>text that nobody asked for</made-up>" * 1_000

    def peak(number):
        text = Text(pieces(number))
        tracemalloc.start()
        with pytest.raises(UnreadableFileError, match="cut off"):
            list(xml_rows.products(text, elements=("item",), wanted=("price",)))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(80) < peak(20) + 200_000
