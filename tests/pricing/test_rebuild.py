"""The price history, derived again from the log."""

from datetime import timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from jobs.messages import NewMessage
from jobs.outbox import publish
from jobs.worker import drain
from pricing import availability, rebuild
from pricing.models import Availability, PriceHistory
from pricing.services import record_observations
from tests.cast import NOW, merchant, price, wine
from tests.pricing.observed import seen

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("rebuild", "price-history", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def history(wine_id: str = "wn_4417") -> list[tuple[str, str, str, bool]]:
    rows = PriceHistory.objects.filter(wine_id=wine_id).order_by("id")
    return [(r.event_id, str(r.price_usd), r.merchant_id, r.late) for r in rows]


def three_prices() -> list[tuple[str, str, str, bool]]:
    for minute, amount in enumerate(["189.00", "154.00", "161.00"]):
        price(amount, minutes=minute)
    drain(["price-history"])
    return history()


def test_a_history_that_is_right_is_left_alone() -> None:
    before = three_prices()
    assert "missing: 0, wrong: 0, surplus: 0" in run()
    assert history() == before


def test_lost_falsified_and_repeated_rows_are_put_right_in_order() -> None:
    before = three_prices()
    PriceHistory.objects.filter(event_id=before[0][0]).delete()
    PriceHistory.objects.filter(event_id=before[1][0]).update(price_usd="1.54")
    again = PriceHistory.objects.get(event_id=before[2][0])
    again.pk = None
    again.save()
    assert "missing: 1, wrong: 1, surplus: 1" in run("--dry-run")
    assert history() != before
    assert "rebuilt" in run()
    assert history() == before


def test_only_the_named_wines_are_touched() -> None:
    before = three_prices()
    other = wine("9")
    price("50.00", of=other)
    drain(["price-history"])
    PriceHistory.objects.all().delete()
    run("--wine", other.pk)
    assert len(history(other.pk)) == 1
    assert history() == []
    run()
    assert history() == before


def test_what_is_older_than_the_log_stays() -> None:
    before = three_prices()
    PriceHistory.objects.create(
        wine_id="wn_4417", merchant_id="mch_082", price_usd="99", observed_at="2020-01-01T00:00Z", event_id="evt_old"
    )
    PriceHistory.objects.filter(event_id=before[0][0]).delete()
    assert "not from the log, kept: 1" in run()
    assert sorted(history()) == sorted([*before, ("evt_old", "99.00", "mch_082", False)])


@pytest.mark.publishes_malformed_events
def test_what_waits_is_not_anticipated_and_what_is_buried_is_not_invented() -> None:
    three_prices()
    with transaction.atomic():
        publish([NewMessage("wine.price_changed", "wn_4417", {"wine_id": "wn_4417"})])
    drain()
    price("170.00", minutes=9)
    before = history()
    PriceHistory.objects.all().delete()
    run()
    assert history() == before
    drain()
    assert len(history()) == 4


def test_what_is_applied_while_it_runs_is_neither_lost_nor_doubled() -> None:
    three_prices()
    price("149.00", minutes=5)
    PriceHistory.objects.filter(price_usd="154.00").delete()
    with rebuild.difference(wines=None) as found:
        drain(["price-history"])  # a worker, between our reading of the log and our writing
        price("148.00", at=merchant("2", "Another"), minutes=6)
        drain(["price-history"])
        assert found.missing == 1
        rebuild.replace(progress=lambda done, wines: None)
    assert sorted(p for _, p, _, _ in history()) == ["148.00", "149.00", "154.00", "161.00", "189.00"]


def test_it_leaves_no_table_behind() -> None:
    three_prices()
    run()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_temp.applied')")
        assert cursor.fetchone() == (None,)


def test_the_gaps_are_derived_again_too() -> None:
    minute = timedelta(minutes=1)
    three_prices()
    availability.withdraw(merchant=merchant(), wine_ids=[wine().pk], at=NOW + 5 * minute, why="gone", now=NOW)
    record_observations(
        merchant=merchant(), observations=[seen("150.00", NOW + 9 * minute)], attributes={}, now=NOW + 9 * minute
    )
    drain(["price-history"])
    before = list(Availability.objects.order_by("id").values_list("event_id", "price_usd", "observed_at"))
    assert [price for _, price, _ in before] == [None, Decimal("150.00")]
    assert "from the log: 6 rows; missing: 0, wrong: 0, surplus: 0; not from the log, kept: 0" in run()
    Availability.objects.filter(price_usd=None).delete()
    Availability.objects.update(price_usd="1.00")
    assert "missing: 1, wrong: 1, surplus: 0" in run()
    assert list(Availability.objects.order_by("id").values_list("event_id", "price_usd", "observed_at")) == before
    assert len(history()) == 4
