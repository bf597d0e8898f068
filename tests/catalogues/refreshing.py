"""Helpers of the tests of the refresh: files as merchants write them, taken at once."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from pricing.catalogues import files, refresh
from pricing.catalogues.stage import PREFIX
from pricing.models import CatalogueFile, CatalogueSettings, Merchant, Offer
from tests import cast
from tests.cast import NOW

HEAD = "id,title,size,vintage,price,currency"
COUNTS = ("changed", "unchanged", "stale", "held", "unmatched", "kept", "rejected")


def csv(*rows: str, head: str = HEAD) -> bytes:
    return "".join(f"{row}\n" for row in (head, *rows)).encode()


def shelf(count: int, first: int = 1) -> None:
    """So many wines, wn_1 …, called Cuvée 1 … of 2019."""
    for n in range(first, first + count):
        cast.wine(str(n), name=f"Cuvée {n}", producer="Domaine Essai", vintage=2019, region="")


def row(n: int, price: str | int = 20, **said: str) -> str:
    """What a merchant writes of wine n, under the id sku-n."""
    told = {"id": f"sku-{n}", "title": f"Cuvée {n}", "size": "75cl", "vintage": "2019", "currency": "USD", **said}
    return f"{told['id']},{told['title']},{told['size']},{told['vintage']},{price},{told['currency']}"


def received(
    merchant: Merchant, data: bytes, *, hours: float = 0, name: str = "stock.csv", send: bool = False, **how: Any
) -> CatalogueFile:
    """`hours` after NOW; `how` are the merchant's settings for files from now on."""
    CatalogueSettings.objects.update_or_create(merchant=merchant, defaults=how)
    return files.receive(
        merchant=merchant, name=name, data=[data], as_of=at(hours), send=send, by="test", now=at(hours)
    )


def taken(merchant: Merchant, data: bytes, *, hours: float = 0, **how: Any) -> CatalogueFile:
    return go_on(received(merchant, data, hours=hours, **how), hours=hours)


def go_on(file: CatalogueFile, *, hours: float = 0) -> CatalogueFile:
    refresh.run(file_id=file.pk, now=at(hours))
    file.refresh_from_db()
    return file


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def counts(file: CatalogueFile) -> dict[str, int]:
    """Those that are not 0. Whatever they are, a file that was taken has counted each row that it could read once."""
    if file.status == CatalogueFile.Status.DONE:
        assert sum(getattr(file, name) for name in COUNTS) == file.rows
    names: Iterable[str] = (*COUNTS, "unread", "absent", "withdrawn")
    return {name: getattr(file, name) for name in names if getattr(file, name)}


def prices() -> dict[str, str]:
    """What is offered now, in dollars."""
    offered = Offer.objects.filter(withdrawn_at__isnull=True).order_by("wine_id")
    return {offer.wine_id: str(offer.price_usd) for offer in offered}


def stages() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, %s)", [PREFIX])
        return [name for (name,) in cursor.fetchall()]
