"""Offers that end and return, as alerts hear of them: through intake and the real worker code."""

from datetime import timedelta
from decimal import Decimal
from unittest.mock import patch

import pytest

from alerts import matching
from alerts.models import Alert, Decision, Notification, SeenPrice
from jobs import control
from jobs.worker import drain
from pricing import availability
from pricing.rules import Observation
from pricing.services import record_observations
from tests.alerts.test_matching import first_check
from tests.cast import NOW, alert, merchant, wine
from winecellar.demo.oracle import WatchedAlert, due_mails
from winecellar.demo.standing import prices_in_log

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)


def asks(price: str, minutes: int, *, at: str = "082") -> None:
    seen = Observation(wine().pk, Decimal(price), NOW + minutes * MINUTE)
    record_observations(merchant=merchant(at, f"Merchant {at}"), observations=[seen], attributes={}, now=NOW)


def leaves(minutes: int, *, at: str = "082") -> None:
    availability.withdraw(
        merchant=merchant(at, f"Merchant {at}"), wine_ids=[wine().pk], at=NOW + minutes * MINUTE, why="gone", now=NOW
    )


def state(watch: Alert) -> str:
    watch.refresh_from_db()
    return watch.state


def judged() -> list[tuple[str, str]]:
    return list(Decision.objects.order_by("id").values_list("outcome", "reason"))


def handle() -> None:
    drain(["alert-matching"])


def test_an_offer_that_ends_no_longer_keeps_an_alert_met() -> None:
    watch = alert("160.00")
    asks("154.00", 0)
    asks("170.00", 0, at="083")
    handle()
    leaves(1)
    handle()
    assert state(watch) == "armed"
    assert judged()[-1] == ("armed", "no longer offered at your target: watching again")
    asks("158.00", 2, at="083")
    handle()
    assert Notification.objects.count() == 2


def test_while_another_offer_is_at_the_target_it_stays_met() -> None:
    watch = alert("160.00")
    asks("154.00", 0)
    asks("155.00", 0, at="083")
    handle()
    leaves(1)
    handle()
    assert state(watch) == "fired"
    assert Notification.objects.count() == 1


def test_a_withdrawn_price_is_not_the_best_when_another_rises() -> None:
    """Two are at the target; one ends, the other rises: nothing is left, so the alert watches again."""
    watch = alert("160.00")
    asks("154.00", 0)
    asks("155.00", 0, at="083")
    handle()
    leaves(1)
    handle()
    asks("190.00", 2, at="083")
    handle()
    assert state(watch) == "armed"
    assert SeenPrice.objects.get(merchant="mch_082").withdrawn


def test_what_comes_back_at_the_price_that_was_mailed_is_no_news() -> None:
    watch = alert("160.00")
    for turn in range(4):
        asks("154.00", 2 * turn)
        handle()
        assert state(watch) == "fired"
        leaves(2 * turn + 1)
        handle()
        assert state(watch) == "armed"
    assert Notification.objects.count() == 1
    assert ("not_mailed", "offered again at $154.00, of which you were told") in judged()


def test_what_comes_back_at_another_price_is_mailed_as_a_price() -> None:
    alert("160.00")
    asks("154.00", 0)
    handle()
    leaves(1)
    handle()
    asks("150.00", 2)
    handle()
    assert [str(mail.new_price) for mail in Notification.objects.order_by("id")] == ["154.00", "150.00"]
    assert judged()[-1] == ("mailed", "below your target")


def test_a_return_at_another_price_is_judged_once_by_its_price() -> None:
    asks("154.00", 0)
    leaves(1)
    handle()
    alert("160.00")
    asks("150.00", 2)
    asks("170.00", 3)
    handle()
    assert judged() == [("not_mailed", "superseded: a newer price had arrived before we looked")]


def test_who_waits_for_what_nobody_offers_is_told_when_it_is_back() -> None:
    asks("154.00", 0)
    leaves(1)
    watch = alert("160.00", state="pending")
    first_check(watch)
    handle()
    assert judged() == [("armed", "first check: nobody offers it now")]
    asks("154.00", 2)
    handle()
    assert state(watch) == "fired"
    assert judged()[-1] == ("mailed", "offered again, below your target")
    mail = Notification.objects.get()
    assert (mail.merchant_name, mail.new_price, mail.old_price) == ("Merchant 082", 154, None)


def test_another_merchants_return_is_news() -> None:
    asks("155.00", 0, at="083")
    leaves(1, at="083")
    alert("160.00")
    asks("155.00", 1)
    handle()
    leaves(2)
    asks("155.00", 3, at="083")
    handle()
    assert [mail.merchant_name for mail in Notification.objects.order_by("id")] == ["Merchant 082", "Merchant 083"]


def test_of_two_alike_the_one_that_was_told_of_another_merchant_hears_of_the_return() -> None:
    told, other = alert("160.00", owner="alice"), alert("160.00", owner="bob")
    asks("154.00", 0)
    handle()
    leaves(1)
    handle()
    Notification.objects.filter(alert=other).update(merchant_name="Merchant 083")
    asks("154.00", 2)
    with patch.object(matching.settings, "ALERT_COOLDOWN", timedelta(0)):
        handle()
    newest = dict(Decision.objects.order_by("id").values_list("alert", "outcome"))
    assert newest == {told.pk: "not_mailed", other.pk: "mailed"}


def test_a_return_that_has_ended_again_is_not_mailed() -> None:
    asks("154.00", 0)
    leaves(1)
    handle()
    alert("160.00")
    asks("154.00", 2)
    leaves(3)
    handle()
    assert not Notification.objects.exists()
    assert judged() == [("not_mailed", "superseded: a newer price had arrived before we looked")]


def test_a_price_whose_offer_has_ended_since_is_not_mailed() -> None:
    alert("160.00")
    asks("154.00", 0)
    leaves(1)
    handle()
    assert not Notification.objects.exists()


def test_each_message_for_itself_comes_to_the_same() -> None:
    watch = alert("160.00")
    control.limit(name="alert-matching", batch=1)
    asks("154.00", 0)
    handle()
    leaves(1)
    asks("154.00", 2)
    leaves(3)
    asks("150.00", 4)
    handle()
    control.limit(name="alert-matching", batch=None)
    assert state(watch) == "fired"
    assert [str(mail.new_price) for mail in Notification.objects.order_by("id")] == ["154.00", "150.00"]


def test_an_offer_whose_first_event_is_still_to_come_decides_nothing() -> None:
    low, back = alert(None, kind="low"), alert(None, kind="back")
    control.limit(name="alert-matching", batch=1)
    asks("154.00", 0)
    asks("170.00", 1, at="083")
    handle()
    assert not Notification.objects.filter(alert=low).exists(), "there was no price before the first"
    leaves(2)
    leaves(2, at="083")
    handle()
    assert state(back) == "armed"
    asks("180.00", 3)
    handle()
    leaves(4)
    asks("190.00", 5, at="084")
    handle()
    control.limit(name="alert-matching", batch=None)
    told = Notification.objects.filter(alert=back).order_by("id").values_list("new_price", flat=True)
    assert [str(price) for price in told] == ["154.00", "180.00", "190.00"]


def test_the_demos_oracle_says_the_same() -> None:
    watch = alert("160.00")
    since = watch.created_at
    model = WatchedAlert(watch.pk, watch.wine_id, None, watch.target, watching=True)
    steps = [
        lambda: asks("154.00", 0),
        lambda: asks("158.00", 0, at="083"),
        lambda: leaves(1),
        lambda: asks("154.00", 2),
        lambda: leaves(3),
        lambda: leaves(3, at="083"),
        lambda: asks("154.00", 4),
        lambda: leaves(5),
        lambda: asks("158.00", 6, at="083"),
        lambda: leaves(7, at="083"),
        lambda: asks("150.00", 8),
    ]
    for step in steps:
        step()
        handle()
    due = due_mails(alerts=[model], prices={}, accepted=prices_in_log(since), further_fall=Decimal("0.05"))
    assert [mail.event_id for mail in due] == list(
        Notification.objects.order_by("id").values_list("event_id", flat=True)
    )
    assert [str(mail.new_price) for mail in Notification.objects.order_by("id")] == ["154.00", "158.00", "150.00"]
