"""Alerts of every kind and in other money, snoozed and over: through intake, the real handler and its queue."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from alerts import candidates, services, sleeping
from alerts.models import Alert, Decision, Notification
from alerts.services import AlertRefusedError, Wish
from jobs.worker import drain
from pricing.models import ExchangeRate, HeldPrice
from pricing.rules import Observation
from pricing.services import record_observations
from tests.alerts.test_matching import first_check
from tests.cast import NOW, alert, merchant, person, price, wine

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1)


def asks(amount: str, days: int, *, currency: str = "USD", at: str = "082") -> None:
    seen = Observation.of(wine().pk, Decimal(amount), currency, NOW + days * DAY)
    record_observations(merchant=merchant(at, f"Merchant {at}"), observations=[seen], attributes={}, now=NOW)


def rate(days: int, dollars: str, **others: str) -> None:
    """What a euro was worth on that day."""
    day = (NOW + days * DAY).astimezone(UTC).date()
    for currency, amount in {"EUR": "1", "USD": dollars, **others}.items():
        ExchangeRate.objects.create(currency=currency, day=day, per_eur=Decimal(amount), source="test")


def handle() -> None:
    drain(["price-history"])
    drain(["alert-matching"])


def judged(one: Alert) -> list[tuple[str, str]]:
    return list(Decision.objects.filter(alert=one).order_by("id").values_list("outcome", "reason"))


def mails(one: Alert) -> list[tuple[str, Decimal]]:
    return list(Notification.objects.filter(alert=one).order_by("id").values_list("currency", "new_price"))


def a_run() -> Any:
    return SimpleNamespace(fenced=transaction.atomic, progress=lambda *_, **__: None)


# --- Money -------------------------------------------------------------------------------------------------------


def test_an_alert_in_the_merchants_money_compares_what_the_merchant_says() -> None:
    rate(0, "1.10")
    one = alert("92.00", currency="EUR")
    asks("92.01", 0, currency="EUR")
    handle()
    assert mails(one) == []
    asks("92.00", 1, currency="EUR")
    handle()
    assert mails(one) == [("EUR", Decimal("92.00"))]
    note = Notification.objects.get()
    assert (note.old_price, note.target) == (Decimal("92.01"), Decimal("92.00"))


def test_other_money_is_compared_at_the_rate_of_the_prices_own_day() -> None:
    rate(0, "1.10", GBP="0.80")
    rate(30, "2.20", GBP="0.80")
    met, missed = alert("80.00", currency="GBP"), alert("79.99", currency="GBP")
    asks("110.00", 0)  # 100 euros that day, which are 80 pounds
    handle()
    assert (mails(met), mails(missed)) == ([("GBP", Decimal("80.00"))], [])
    asks("200.00", 0, at="083")
    handle()
    later = alert("50.00", currency="GBP", state="pending")
    first_check(later)  # at the later rate it would be 40 pounds
    handle()
    assert judged(later) == [("armed", "first check: above your target")]


def test_a_price_that_only_the_exchange_rate_made_cheaper_is_not_mailed_and_the_log_says_why() -> None:
    rate(0, "1.10")
    rate(1, "1.05")
    one = alert("100.00")
    asks("92.00", 0, currency="EUR")  # $101.20
    handle()
    asks("92.50", 1, currency="EUR")  # more euros, and $97.13
    handle()
    assert judged(one) == [("not_mailed", "only the exchange rate made it cheaper, not the merchant")]
    asks("92.40", 2, currency="EUR")
    handle()
    assert mails(one) == [("USD", Decimal("97.02"))]


def test_a_currency_that_nobody_can_convert_is_refused() -> None:
    price("110.00")
    with pytest.raises(AlertRefusedError, match="No exchange rate of CHF") as refused:
        services.create_alert(user=person(), wine=wine(), wish=Wish(target=Decimal(1), currency="CHF"), now=NOW)
    assert refused.value.field == "currency"


# --- Kinds -------------------------------------------------------------------------------------------------------


def test_a_percentage_comes_to_a_target_and_stays_it() -> None:
    price("159.99")
    wish = Wish(kind=Alert.Kind.PERCENT, percent=Decimal("12.5"))
    one = services.create_alert(user=person(), wine=wine(), wish=wish, now=NOW)
    one.refresh_from_db()
    assert (one.target, one.percent) == (Decimal("139.99"), Decimal("12.5"))
    price("150.00", minutes=1)
    services.change_alert(alert=one, wish=Wish(**{**_kept(one), "name": "Gift"}), now=NOW)
    assert (one.target, one.name) == (Decimal("139.99"), "Gift")
    services.change_alert(alert=one, wish=Wish(**{**_kept(one), "percent": Decimal(10)}), now=NOW)
    assert one.target == Decimal("135.00")


def _kept(one: Alert) -> dict[str, Any]:
    return {"kind": Alert.Kind(one.kind), "percent": one.percent, "name": one.name}


def test_a_percentage_of_no_price_is_refused() -> None:
    with pytest.raises(AlertRefusedError, match="Nobody offers it now") as refused:
        wish = Wish(kind=Alert.Kind.PERCENT, percent=Decimal(10))
        services.create_alert(user=person(), wine=wine(), wish=wish, now=NOW)
    assert refused.value.field == "percent"


def test_a_low_is_below_all_of_its_window_and_what_stood_when_it_began() -> None:
    asks("100.00", 0)
    asks("120.00", 10)
    handle()
    ever = alert(None, kind="low")
    month, week = alert(None, kind="low", low_days=30), alert(None, kind="low", low_days=7)
    elsewhere = alert(None, kind="low", merchant=merchant("083", "Merchant 083"))
    asks("110.00", 20)  # a week before it was 120; ten days before that 100
    handle()
    assert [mails(one) for one in (ever, month, week, elsewhere)] == [[], [], [("USD", Decimal("110.00"))], []]
    asks("99.99", 39)
    handle()
    assert [len(mails(one)) for one in (ever, month, week, elsewhere)] == [1, 1, 2, 0]
    assert judged(month) == [("mailed", "the lowest in 30 days")]


def test_a_first_price_is_no_low_and_a_late_one_was_nobodys() -> None:
    one = alert(None, kind="low")
    asks("100.00", 0)
    handle()
    assert mails(one) == []
    asks("50.00", -1)
    handle()
    asks("90.00", 1)
    handle()
    assert mails(one) == [("USD", Decimal("90.00"))]


def test_what_stands_counts_although_the_history_is_behind() -> None:
    asks("100.00", 0)
    handle()
    asks("90.00", 1)
    drain(["alert-matching"])
    one = alert(None, kind="low")
    asks("95.00", 2)
    drain(["alert-matching"])
    assert mails(one) == []
    drain(["price-history"])
    asks("89.00", 3)
    drain(["alert-matching"])
    assert mails(one) == [("USD", Decimal("89.00"))]


def test_a_price_that_is_held_says_nothing_until_a_person_lets_it_stand() -> None:
    asks("200.00", 0)
    handle()
    one = alert("160.00")
    asks("2.00", 1)
    handle()
    assert HeldPrice.objects.count() == 1
    assert judged(one) == []


# --- Sleeping ----------------------------------------------------------------------------------------------------


def test_what_happened_during_a_snooze_is_told_when_it_is_over_without_another_price() -> None:
    one, expired, bobs = alert("160.00"), alert("159.00", expires_at=NOW), alert("158.00", owner="bob")
    for each in (one, expired):
        Alert.objects.filter(pk=each.pk).update(snoozed_until=timezone.now() + timedelta(hours=1))
    asks("154.00", 0)
    handle()
    assert [len(mails(each)) for each in (one, expired, bobs)] == [0, 0, 1]
    sleeping.end_snoozes(a_run())
    handle()
    assert mails(one) == []
    Alert.objects.filter(snoozed_until__isnull=False).update(snoozed_until=timezone.now())
    sleeping.end_snoozes(a_run())
    handle()
    assert [mails(each) for each in (one, expired)] == [[("USD", Decimal("154.00"))], []]
    assert Alert.objects.get(pk=one.pk).snoozed_until is None


@pytest.mark.parametrize("how", [{"deleted_at": NOW}, {"expires_at": NOW}, {"state": "paused"}])
def test_an_alert_that_is_over_hears_nothing(how: dict[str, Any]) -> None:
    one = alert("160.00", **how)
    asks("154.00", 0)
    first_check(one)
    handle()
    assert judged(one) == []


@pytest.mark.parametrize(
    "how",
    [
        {"deleted_at": NOW},
        {"expires_at": NOW},
        {"snoozed_until": datetime(2100, 1, 1, tzinfo=UTC)},
        {"snoozed_until_rise": True},
    ],
)
def test_a_mail_that_was_decided_on_is_not_sent_after_the_owner_hushed_the_alert(how: dict[str, Any]) -> None:
    one = alert("160.00")
    asks("154.00", 0)
    handle()
    Alert.objects.filter(pk=one.pk).update(**how)
    drain()
    assert Notification.objects.get().state == "unwanted"


def test_until_it_rises_ends_when_it_has_risen() -> None:
    one = alert("160.00")
    asks("154.00", 0)
    handle()
    services.snooze_until_rise(alert=one, now=NOW)
    asks("100.00", 1)
    asks("170.00", 2)
    handle()
    one.refresh_from_db()
    assert (one.state, one.snoozed_until_rise) == ("armed", False)
    asks("150.00", 3)
    handle()
    assert [str(amount) for _, amount in mails(one)] == ["154.00", "150.00"]


# --- The schema, and many ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"target": None},
        {"target": "0.00"},
        {"target": "-1"},
        {"kind": "low", "target": "1"},
        {"kind": "low", "target": None, "low_days": 0},
        {"kind": "back", "target": None, "low_days": 1},
        {"kind": "percent", "target": "1"},
        {"kind": "percent", "target": "1", "percent": 100},
        {"target": "1", "currency": "usd"},
        {"target": "1", "snoozed_until_rise": True},
    ],
)
def test_the_schema_refuses_what_is_no_alert(fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        alert(fields.pop("target"), **fields)


def test_a_wine_with_many_watchers_is_taken_in_chunks_and_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "CHUNK", 7)
    user = person()
    Alert.objects.bulk_create(
        Alert(user=user, wine=wine(), target=Decimal(150 + number), state=Alert.State.ARMED) for number in range(30)
    )
    asks("160.00", 0)
    asks("155.00", 1)
    with CaptureQueriesContext(connection) as queries:
        handle()
    assert Notification.objects.count() == 25
    assert Decision.objects.filter(outcome="mailed").count() == 25
    assert Alert.objects.filter(state="fired").count() == 25
    assert sum("FOR NO KEY UPDATE" in (query["sql"] or "") for query in queries) == 4  # of 25: no others are read
