"""Vivino's product list, XML. Pure.

Vivino tells its fields to its merchants alone; these are those that the feed plugins for WooCommerce and programs of
shops write: `vivino-product-list/product` with `product-name`, `price`, `bottle_size` and `bottle_quantity` or
`<bottles size="750ml">1</bottles>`, `inventory-count`, `link`, `product-id`, and `extras` with `vintage`, `producer`
and `ean`. A price is for all bottles of the quantity, and names no currency.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pricing.catalogues import xml_rows
from pricing.catalogues.delimited import packed
from pricing.catalogues.options import FileSettings
from pricing.catalogues.rows import Raw, Rejected, checked, identity
from pricing.catalogues.stream import Text

ROOT = "vivino-product-list"
# Names count with `-` for `_`. Some write the extras beside the rest, or call them `extra`.
_PLAIN = ("product-name", "price", "bottle-size", "bottle-quantity", "bottles", "inventory-count", "link")
_EXTRAS = ("product-id", "vintage", "ean", "upc", "jan")
_PLACES = ("", "extras/", "extra/")
_WANTED = ("bottles@size", *_PLAIN, *(f"{place}{name}" for place in _PLACES for name in _EXTRAS))


def read(text: Text, settings: FileSettings, now: datetime) -> Iterator[Raw | Rejected]:
    for product in xml_rows.products(text, elements=("product",), wanted=_WANTED):
        yield _row(product)


def _row(product: xml_rows.Product) -> Raw | Rejected:
    said = product.texts.get
    extra = {name: next((found for place in _PLACES if (found := said(place + name))), "") for name in _EXTRAS}
    title = said("product-name", "")
    quantity = said("bottle-quantity") or said("bottles") or ""
    size = packed(quantity, said("bottle-size") or said("bottles@size") or "")
    gtin = extra["ean"] or extra["upc"] or extra["jan"]
    source_id = extra["product-id"] or identity(title, size, extra["vintage"], gtin)
    if "price" in product.twice:
        return Rejected(product.line, "price", "It is there twice, and differs.", source_id)
    return checked(
        Raw(
            line=product.line,
            source_id=source_id,
            title=title,
            size=size,
            vintage=extra["vintage"],
            gtin=gtin,
            price=said("price", ""),
            availability=said("inventory-count", ""),
            url=said("link", ""),
        )
    )
