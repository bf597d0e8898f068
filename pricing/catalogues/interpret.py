"""A row's meaning: which thing it is, as far as it says, and what is asked for it. Pure.

Guarantee: it raises nothing; a row is an Ask whose every part was read for certain or left unclear for a person, or a
Rejected that names field and reason. Called by the refresh, for the rows that are not as they were.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from pricing.catalogues.availability import UnclearAvailabilityError, is_sold
from pricing.catalogues.numbers import NumberStyle
from pricing.catalogues.options import FileSettings
from pricing.catalogues.prices import InvalidCurrencyError, InvalidPriceError, read_currency, read_price, says_nothing
from pricing.catalogues.rows import Raw, Rejected
from pricing.matching import Ask, read_listing
from pricing.sizes import Packing

_WINE_ID = re.compile(r"wn_[A-Za-z0-9_]{1,37}", re.ASCII)


def interpret(raw: Raw, settings: FileSettings, style: NumberStyle, now: datetime) -> Ask | Rejected:
    """`now` is when the file says that this is so."""
    try:
        sold = is_sold(raw.availability)
    except UnclearAvailabilityError as error:
        return Rejected(raw.line, "availability", str(error), raw.source_id)
    if raw.wine_id and not _WINE_ID.fullmatch(raw.wine_id):
        return Rejected(raw.line, "wine_id", "Our wine ids are wn_ and letters or digits.", raw.source_id)
    price, currency = None, settings.currency
    if not says_nothing(raw.price):
        try:
            currency = read_currency(raw.price, said=raw.currency, usual=settings.currency)
            price = read_price(raw.price, style, currency=currency, unit=settings.unit)
        except InvalidCurrencyError as error:
            return Rejected(raw.line, "currency", str(error), raw.source_id)
        except InvalidPriceError as error:
            return Rejected(raw.line, "price", str(error), raw.source_id)
    listed = read_listing(
        raw.title, size=raw.size, vintage=raw.vintage, gtin=raw.gtin, lwin=raw.lwin, wine_id=raw.wine_id
    )
    if listed.packing is None and settings.unsaid_size_ml and not listed.unclear:
        listed = replace(listed, packing=Packing(1, settings.unsaid_size_ml))
    return Ask(
        source_id=raw.source_id,
        listed=listed,
        price=price,
        currency=currency,
        tax=settings.tax,
        occurred_at=now,
        in_stock=sold,
    )


def says_currency(raw: Raw) -> bool:
    """Whether a priced row names its currency itself; the refresh counts those that take the merchant's."""
    return bool(raw.currency) or bool(re.search(r"[^\W\d_]|[^\x00-\x7f]|\$", raw.price))
