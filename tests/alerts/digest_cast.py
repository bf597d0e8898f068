"""People with a week that held something, and the week's job without its scheduler."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import transaction

from alerts.digest.weekly import make_digests
from alerts.models import Alert
from pricing.models import Offer, PriceHistory
from tests.cast import alert, merchant, wine

SLOT = datetime(2026, 3, 16, 8, 0, tzinfo=UTC)  # a Monday
DAY = timedelta(days=1)


class Worth(NamedTuple):
    currency: str
    value: Decimal
    before: Decimal | None


def nobodys(_: Collection[int], *, on: date) -> Mapping[int, Worth]:
    return {}


@contextmanager
def fenced() -> Iterator[None]:
    with transaction.atomic(durable=True):
        yield


def make(worths: Callable[..., Any] = nobodys, **options: Any) -> int:
    given = {"slot": SLOT, "fenced": fenced, "progress": lambda *_, **__: None, "worths": worths, "now": SLOT}
    return make_digests(**{**given, **options})


def fell(number: str = "4417", *, before: str = "200.00", now: str = "164.00", days: int = 3) -> None:
    """A wine that cost `before` a fortnight ago and fell so many days before the slot."""
    bottle, seller, at = wine(number), merchant(), SLOT - days * DAY
    PriceHistory.objects.bulk_create(
        [
            PriceHistory(
                wine=bottle, merchant_id=seller.pk, price_usd=before, observed_at=SLOT - 14 * DAY, event_id="e1"
            ),
            PriceHistory(wine=bottle, merchant_id=seller.pk, price_usd=now, observed_at=at, event_id="e2"),
        ]
    )
    Offer.objects.create(
        wine=bottle, merchant=seller, price_usd=now, occurred_at=at, event_id="e2", updated_at=at, seen_at=at
    )


def watcher(name: str = "alice", number: str = "4417", target: str = "100.00") -> Alert:
    return alert(target, owner=name, wine=wine(number))
