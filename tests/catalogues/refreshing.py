"""Helpers of the tests of the refresh: files as merchants write them, taken at once."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from pricing.catalogues import files, refresh
from pricing.models import CatalogueFile, CatalogueSettings, Merchant, Offer
from tests import cast
from tests.cast import NOW

HEAD = "id,title,size,vintage,price,currency"
MONTROSE = "sku-1,Ch. Montrose,75cl,2016,{},USD"


def csv(*rows: str, head: str = HEAD) -> bytes:
    return "".join(f"{row}\n" for row in (head, *rows)).encode()


def shelf(count: int) -> None:
    """So many wines, wn_1 …, called Cuvée 1 … of 2019."""
    for n in range(1, count + 1):
        cast.wine(str(n), name=f"Cuvée {n}", producer="Domaine Essai", vintage=2019, region="")


def row(n: int, price: str | int = 20) -> str:
    return f"sku-{n},Cuvée {n},75cl,2019,{price},USD"


def received(
    merchant: Merchant, data: bytes, *, hours: float = 0, name: str = "stock.csv", send: bool = False, **how: Any
) -> CatalogueFile:
    """`how` are the merchant's settings for files from now on."""
    CatalogueSettings.objects.update_or_create(merchant=merchant, defaults=how)
    return files.receive(
        merchant=merchant, name=name, data=[data], as_of=at(hours), send=send, by="test", now=at(hours)
    )


def taken(merchant: Merchant, data: bytes, *, hours: float = 0, **how: Any) -> CatalogueFile:
    file = received(merchant, data, hours=hours, **how)
    return go_on(file, hours=hours)


def go_on(file: CatalogueFile, *, hours: float = 0) -> CatalogueFile:
    refresh.run(file_id=file.pk, now=at(hours))
    file.refresh_from_db()
    return file


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def counts(file: CatalogueFile) -> dict[str, int]:
    """Those that are not 0."""
    names: Iterable[str] = ("changed", "unchanged", "stale", "held", "unmatched", "kept", "rejected", "unread")
    found = {name: getattr(file, name) for name in (*names, "absent", "withdrawn")}
    return {name: count for name, count in found.items() if count}


def prices() -> dict[str, str]:
    return {offer.wine_id: str(offer.price_usd) for offer in Offer.objects.order_by("wine_id")}
