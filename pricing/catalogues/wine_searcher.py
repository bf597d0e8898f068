"""Wine-Searcher's data feeds: XML, and text with pipes, with a first line of names or without. Pure.

Its page for merchants (wine-searcher.com/trade/datafeed) has the fields `SKU|name|description|vintage|unit-size|price|
stock|url|min-order|tax|offer-type|delivery-time|LWIN|imageurl`; programs of others write the XML as below, some with
the names of the page before it. A price is for the whole of `unit-size`, such as `6 x 75cl`, and names no currency.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pricing.catalogues import delimited, xml_rows
from pricing.catalogues.options import Field, FileSettings
from pricing.catalogues.rows import Raw, Rejected, checked, identity
from pricing.catalogues.stream import Text

ROOT = "wine-searcher-datafeed"
ORDER = "SKU|name|description|vintage|unit-size|price|stock|url|min-order|tax|offer-type|delivery-time|LWIN|imageurl"
NAMES: dict[Field, tuple[str, ...]] = {
    Field.SOURCE_ID: ("sku",),
    Field.TITLE: ("name", "wine name", "winename"),
    Field.SIZE: ("unit size", "unitsize", "bottle size", "bottlesize"),
    Field.VINTAGE: ("vintage",),
    Field.LWIN: ("lwin",),
    Field.PRICE: ("price",),
    Field.AVAILABILITY: ("stock",),
    Field.URL: ("url", "link", "deeplink"),
}
_PATHS = {field: tuple(name.replace(" ", "-") for name in names) for field, names in NAMES.items()}


def read_text(text: Text, settings: FileSettings, now: datetime) -> Iterator[Raw | Rejected]:
    return delimited.read_named(text, settings, now, NAMES, fixed=ORDER.split("|"))


def read_xml(text: Text, settings: FileSettings, now: datetime) -> Iterator[Raw | Rejected]:
    wanted = [path for paths in _PATHS.values() for path in paths]
    for product in xml_rows.products(text, elements=("row", "wine"), wanted=wanted):
        yield _row(product)


def _row(product: xml_rows.Product) -> Raw | Rejected:
    texts = product.texts
    said = {field: next((texts[path] for path in paths if texts.get(path)), "") for field, paths in _PATHS.items()}
    title, size, vintage, lwin = (said[each] for each in (Field.TITLE, Field.SIZE, Field.VINTAGE, Field.LWIN))
    source_id = said[Field.SOURCE_ID] or identity(title, size, vintage, lwin)
    if "price" in product.twice:
        return Rejected(product.line, "price", "It is there twice, and differs.", source_id)
    return checked(
        Raw(
            line=product.line,
            source_id=source_id,
            title=title,
            size=size,
            vintage=vintage,
            lwin=lwin,
            price=said[Field.PRICE],
            availability=said[Field.AVAILABILITY],
            url=said[Field.URL],
        )
    )
