"""Google Merchant Center's product data: RSS 2.0 and Atom with the `g` namespace, and delimited text. Pure.

Fields after Google's product data specification (support.google.com/merchants/answer/7052112), the files after its
pages on RSS 2.0, Atom and text. Guarantee: a price is the product's own, never its shipping's or its instalment's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pricing.catalogues import delimited, xml_rows
from pricing.catalogues.options import Field, FileSettings
from pricing.catalogues.rows import Raw, Rejected, checked, identity
from pricing.catalogues.sales import UnclearDatesError, price_now
from pricing.catalogues.stream import Text

NAMESPACE = "http://base.google.com/ns/1.0"
NAMES: dict[Field, tuple[str, ...]] = {
    Field.SOURCE_ID: ("id",),
    Field.TITLE: ("title",),
    Field.SIZE: ("size",),
    Field.GTIN: ("gtin",),
    Field.PRICE: ("price",),
    Field.AVAILABILITY: ("availability",),
    Field.URL: ("link",),
    Field.SALE_PRICE: ("sale price",),
    Field.SALE_DATES: ("sale price effective date",),
}
# RSS and Atom have elements of these names too, which count where Google's own are left out.
_BOTH = ("id", "title", "link")
_OWN = ("size", "gtin", "price", "availability", "sale-price", "sale-price-effective-date")
_WANTED = ("link@href", *_BOTH, *(f"g:{name}" for name in (*_BOTH, *_OWN)))
_ONCE = {"g:price": "price", "g:sale-price": "sale_price", "g:id": "source_id"}


def read_text(text: Text, settings: FileSettings, now: datetime) -> Iterator[Raw | Rejected]:
    return delimited.read_named(text, settings, now, NAMES)


def read_xml(text: Text, settings: FileSettings, now: datetime) -> Iterator[Raw | Rejected]:
    for product in xml_rows.products(text, elements=("item", "entry"), wanted=_WANTED, prefixes={NAMESPACE: "g:"}):
        yield _row(product, now)


def _row(product: xml_rows.Product, now: datetime) -> Raw | Rejected:
    said = product.texts.get
    title = said("g:title") or said("title") or ""
    size, gtin = said("g:size", ""), said("g:gtin", "")
    source_id = said("g:id") or said("id") or identity(title, size, gtin)
    for path, field in _ONCE.items():
        if path in product.twice:
            return Rejected(product.line, field, "It is there twice, and differs.", source_id)
    try:
        price = price_now(said("g:price", ""), said("g:sale-price", ""), said("g:sale-price-effective-date", ""), now)
    except UnclearDatesError as error:
        return Rejected(product.line, Field.SALE_DATES, str(error), source_id)
    return checked(
        Raw(
            line=product.line,
            source_id=source_id,
            title=title,
            size=size,
            gtin=gtin,
            price=price,
            availability=said("g:availability", ""),
            url=said("g:link") or said("link") or said("link@href") or "",
        )
    )
