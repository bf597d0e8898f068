"""Every parser of what comes from outside: what it is fed, how, and which refusals it has declared. No database."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pricing import ecb
from pricing.catalogues.errors import UnclearNumbersError, UnreadableFileError
from pricing.catalogues.interpret import interpret
from pricing.catalogues.numbers import NumberColumn
from pricing.catalogues.options import FileSettings
from pricing.catalogues.rows import Raw, Rejected
from pricing.codes import InvalidCodeError, read_gtin, read_lwin
from pricing.feeds import formats, shopify, woocommerce
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import parse
from pricing.feeds.shops import UnknownTopicError
from pricing.matching import Ask, read_listing
from pricing.sizes import UnclearSizeError, read_packing
from pricing.titles import UnclearVintageError, read_title, read_vintage
from tests.catalogues.files import take
from tests.cellars.exports import BOTTLES, CONSUMED, INVENTORY, LIST, PURCHASE, browser, tabs
from tests.feeds.shops import shopify_product, shopify_variant, woo_product
from tests.fuzz.mutate import gzipped, zipped
from winecellar.cellars.files import table
from winecellar.cellars.files.lots import AbsurdFileError
from winecellar.cellars.files.reader import read_file

NOW = datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC)
OBSERVATION = {"wine_id": "wn_4417", "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"}
EVENT = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "price", "time": "2026-03-14T09:12:04Z"}
CSV = (
    "id,title,price,currency,size,vintage,availability\n"
    "7,Ch. Montrose 2016,154.00,EUR,75cl,2016,in stock\n8,Yquem,1 230,,,,\n"
)
RSS = (
    '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel><item>'
    "<g:id>7</g:id><title>Ch. Montrose &amp; <![CDATA[x]]> 2016</title><g:price>154.00 EUR</g:price>"
    "<g:availability>in_stock</g:availability><g:size>75cl</g:size></item></channel></rss>"
)
WINE_SEARCHER = (
    '<?xml version="1.0"?><wine-searcher-datafeed><product-list><row><name>Montrose</name><price>154</price>'
    "<vintage>2016</vintage><bottle-size>75cl</bottle-size><link>https://shop.example/7</link></row></product-list>"
    "</wine-searcher-datafeed>"
)
VIVINO = (
    "<vivino-product-list><product><product-name>Montrose 2016</product-name><price>154.00</price>"
    '<bottles size="750 ml" quantity="1"/><product-id>7</product-id></product></vivino-product-list>'
)
RATES = b"Date,USD,JPY,TRL,\n2026-03-13,1.1002,161.33,N/A,\n1999-01-04,1.1789,133.73,372274,\n"
DAILY = b"Date, USD, JPY, BGN, \n13 March 2026, 1.1002, 161.33, N/A, \n"


@dataclass(frozen=True)
class Target:
    """`feed` gives the parser one input. It raises what the parser does, but for what it has `declared`."""

    name: str
    seeds: Sequence[bytes]
    feed: Callable[[bytes], object]
    declared: tuple[type[Exception], ...] = ()
    is_json: bool = False
    pack: Callable[[bytes], bytes] | None = None  # every other input, so that what is inside is damaged too


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def _feed_of(media_type: str, **headers: str) -> Callable[[bytes], object]:
    return lambda body: formats.read(media_type, headers, body, merchant_id="mch_082", now=NOW)


def _binary_event(body: bytes) -> object:
    """The headers of an event in binary form are from outside too."""
    head, _, rest = body.partition(b"\n\n")
    lines = [line.partition(b":") for line in head.decode("latin-1").encode("latin-1").split(b"\n")]
    headers = {f"ce-{name.decode('latin-1').lower()}": value.decode("latin-1") for name, _, value in lines}
    return formats.read(formats.JSON, headers, rest, merchant_id="mch_082", now=NOW)


def _shopify(body: bytes) -> object:
    headers = {shopify.TOPIC: "products/update", shopify.TRIGGERED: "2026-03-14T09:12:04.5Z"}
    return shopify.adapt(headers, parse(body), currency="USD", now=NOW)


def _woo(body: bytes) -> object:
    return woocommerce.adapt({woocommerce.TOPIC: "product.updated"}, parse(body), currency="EUR", now=NOW)


def _catalogue(name: str) -> Callable[[bytes], object]:
    settings = FileSettings(currency="EUR")

    def read(content: bytes) -> object:
        """As a refresh does: every row, then what each one means. `take` lets pass a declared refusal of the file."""
        taken = take(content, name=name, currency="EUR")
        numbers = NumberColumn()
        numbers.feed(row.price for row in taken.raw)
        style = numbers.style()
        meant = [interpret(row, settings, style, NOW) for row in taken.raw]
        assert all(isinstance(one, (Ask, Rejected)) for one in meant)
        if taken.fault:
            raise taken.fault
        return meant

    return read


def _cellar(content: bytes) -> object:
    return read_file(content, decimal_sign="", most=100_000, most_per_row=1_200, mean=60)


def _words(content: bytes) -> object:
    """All that is read of a single field."""
    text = content.decode("utf-8", "replace").replace("\x00", "")
    for read, refusals in (
        (read_packing, UnclearSizeError),
        (read_vintage, UnclearVintageError),
        (read_title, (UnclearVintageError, UnclearSizeError)),
        (read_gtin, InvalidCodeError),
        (read_lwin, InvalidCodeError),
    ):
        with suppress(refusals):  # type: ignore[arg-type]
            read(text)
    return interpret(
        Raw(line=1, source_id="7", title=text, price=text[:40]), FileSettings(), NumberColumn().style(), NOW
    ), read_listing(text)


MUCH_BEFORE = RSS.replace("<rss", "<!-- a --><?b?>" * 30 + "<rss")
CELLARS = [tabs(each, {}) for each in (INVENTORY, LIST, BOTTLES, PURCHASE, CONSUMED)]
TARGETS = [
    Target(
        "canonical",
        [_json({"observations": [OBSERVATION, {**OBSERVATION, "price": 154}]})],
        _feed_of(formats.JSON),
        (FeedError,),
        is_json=True,
    ),
    Target("ndjson", [_json(OBSERVATION) + b"\n" + _json(OBSERVATION) + b"\n"], _feed_of(formats.NDJSON), (FeedError,)),
    Target(
        "cloudevent", [_json({**EVENT, "data": OBSERVATION})], _feed_of(formats.CLOUDEVENT), (FeedError,), is_json=True
    ),
    Target(
        "cloudevents",
        [_json([{**EVENT, "data": OBSERVATION}] * 2)],
        _feed_of(formats.CLOUDEVENTS),
        (FeedError,),
        is_json=True,
    ),
    Target(
        "cloudevent in headers",
        [b"\n".join(f"{k}:{v}".encode() for k, v in EVENT.items()) + b"\n\n" + _json(OBSERVATION)],
        _binary_event,
        (FeedError,),
    ),
    Target(
        "shopify",
        [_json(shopify_product()), _json(shopify_product(shopify_variant(1, "9", "6 x 75cl")))],
        _shopify,
        (FeedError, UnknownTopicError),
        is_json=True,
    ),
    Target("woocommerce", [_json(woo_product())], _woo, (FeedError, UnknownTopicError), is_json=True),
    Target(
        "catalogue csv",
        [CSV.encode(), CSV.replace(",", "\t").encode("cp1252")],
        _catalogue("list.csv"),
        (UnclearNumbersError, UnreadableFileError),
        pack=gzipped,
    ),
    Target(
        "catalogue xml",
        [
            RSS.encode(),
            WINE_SEARCHER.encode(),
            VIVINO.encode(),
            RSS.replace("<rss", "<!-- a --><?b?>" * 30 + "<rss").encode(),
        ],
        _catalogue("list.xml"),
        (UnclearNumbersError, UnreadableFileError),
        pack=gzipped,
    ),
    Target(
        "catalogue gzip",
        [gzipped(CSV.encode()), gzipped(RSS.encode())],
        _catalogue("list.csv.gz"),
        (UnclearNumbersError, UnreadableFileError),
    ),
    Target(
        "cellar file",
        [*CELLARS, browser(INVENTORY, {"Barcode": "2"})],
        _cellar,
        (table.UnreadableFileError, AbsurdFileError),
    ),
    Target(
        "rates",
        [RATES, DAILY, zipped(RATES)],
        lambda content: ecb.read(content, today=date(2026, 3, 14)),
        (ecb.RatesError,),
        pack=zipped,
    ),
    Target(
        "words",
        [b"Ch. Montrose 2016 6 x 75cl", b"Magnum", b"4006381333931", b"1012781", b"1.234,50 EUR"],
        _words,
        (UnclearNumbersError,),
    ),
]
