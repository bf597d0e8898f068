"""What people do with their alerts: each change with its message, in order per wine, within the limit."""

import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from alerts import services, sleeping
from alerts.models import Alert, Decision, Notification
from alerts.services import Wish
from jobs.models import LoggedMessage
from pricing.models import Offer, Wine
from tests.cast import NOW, alert, merchant, person, price, wine

DEADLINE = 10  # seconds after which a thread that should have moved on has failed


def watch(threshold: str = "150.00", **fields: Any) -> Alert:
    user, bottle = fields.pop("user", None) or person(), fields.pop("wine", None) or wine()
    wish = Wish(**{"target": Decimal(threshold), **fields})
    return services.create_alert(user=user, wine=bottle, wish=wish, now=NOW)


def retarget(one: Alert, target: str) -> None:
    services.change_alert(alert=one, wish=Wish(target=Decimal(target)), now=NOW)


def asked() -> list[tuple[str, dict[str, Any]]]:
    """What matching was asked to look at, in order."""
    return [(row.key, row.body) for row in LoggedMessage.objects.filter(type="alert.created").order_by("id")]


def a_run() -> Any:
    """A run whose chunks are transactions without a lock."""
    return SimpleNamespace(fenced=transaction.atomic, progress=lambda *_, **__: None)


def stored(one: Alert) -> tuple[str, Decimal]:
    return Alert.objects.values_list("state", "target").get(pk=one.pk)


# --- Creating ----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_new_alert_is_pending_knows_the_best_price_and_matching_is_asked() -> None:
    price("168.00", at=merchant("083", "Y"))
    price("160.00")
    price("1.00", of=wine("2"))
    made = watch()
    made.refresh_from_db()
    assert (made.user, made.wine, made.merchant, made.state) == (person(), wine(), None, "pending")
    assert (made.target, made.price_when_created, made.created_at) == (Decimal(150), Decimal(160), NOW)
    assert asked() == [("wn_4417", {"alert_id": made.pk, "wine_id": "wn_4417"})]


@pytest.mark.django_db
def test_an_alert_at_one_merchant_knows_that_merchants_price() -> None:
    price("168.00", at=merchant("083", "Y"))
    price("160.00")
    assert watch(merchant=merchant("083")).price_when_created == Decimal(168)
    assert watch(merchant=merchant("084", "Z")).price_when_created is None


@pytest.mark.django_db
def test_a_wine_that_nobody_offers_can_be_watched() -> None:
    assert watch().price_when_created is None
    assert len(asked()) == 1


@pytest.mark.django_db
def test_the_same_alert_is_refused_with_the_one_there_is() -> None:
    first = watch()
    with pytest.raises(services.AlreadyWatchedError) as refused:
        watch("150")
    assert refused.value.alert == first
    assert len(asked()) == 1
    watch("149.99")
    watch(merchant=merchant())
    watch(user=person("bob"))
    watch(wine=wine("2"))
    assert Alert.objects.count() == 5


@pytest.mark.django_db
def test_a_retired_wine_is_refused() -> None:
    Wine.objects.filter(pk=wine().pk).update(retired_at=NOW)
    with pytest.raises(services.AlertRefusedError, match="no longer listed"):
        watch()
    assert asked() == []


@pytest.mark.django_db
def test_the_limit_counts_this_persons_alerts_only(settings: Any) -> None:
    settings.ALERTS_PER_USER = 2
    alert(owner="bob")
    watch("1")
    watch("2")
    with pytest.raises(services.AlertRefusedError, match="You have 2 alerts, which is the most there can be"):
        watch("3")
    assert Alert.objects.filter(user=person()).count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize("act", ["create", "change", "resume"])
def test_nothing_is_changed_when_the_message_cannot_be_published(monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    one = alert("160", state="paused" if act == "resume" else "armed")
    before = stored(one)

    def fail(messages: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(services, "publish", fail)
    actions: dict[str, Callable[[], object]] = {
        "create": watch,
        "change": lambda: retarget(one, "1"),
        "resume": lambda: services.resume(alert=one, now=NOW),
    }
    with pytest.raises(OperationalError):
        actions[act]()
    assert Alert.objects.count() == 1
    assert stored(one) == before


# --- Changing ----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["pending", "armed", "fired"])
def test_another_target_is_checked_anew(state: str) -> None:
    one = alert("160", state=state)
    retarget(one, "140.00")
    assert stored(one) == ("pending", Decimal("140.00"))
    assert (one.state, one.target) == ("pending", Decimal("140.00"))
    assert asked() == [("wn_4417", {"alert_id": one.pk, "wine_id": "wn_4417"})]


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["pending", "armed", "fired", "paused"])
def test_the_same_target_again_changes_nothing(state: str) -> None:
    one = alert("160", state=state)
    retarget(one, "160.00")
    assert stored(one) == (state, Decimal("160.00"))
    assert asked() == []


@pytest.mark.django_db
def test_a_paused_alert_takes_another_target_and_stays_paused() -> None:
    one = alert("160", state="paused")
    retarget(one, "140.00")
    assert stored(one) == ("paused", Decimal("140.00"))
    assert asked() == []


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["pending", "armed", "fired", "paused"])
def test_any_alert_can_be_paused(state: str) -> None:
    one = alert("160", state=state)
    services.pause(alert=one, now=NOW)
    assert stored(one) == ("paused", Decimal("160.00"))
    assert asked() == []


@pytest.mark.django_db
def test_a_resumed_alert_begins_with_the_price_now() -> None:
    one = alert("160", state="paused")
    services.resume(alert=one, now=NOW)
    assert stored(one)[0] == "pending"
    assert len(asked()) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["pending", "armed", "fired"])
def test_resuming_what_is_not_paused_changes_nothing(state: str) -> None:
    one = alert("160", state=state)
    services.resume(alert=one, now=NOW)
    assert stored(one)[0] == state
    assert asked() == []


@pytest.mark.django_db
@pytest.mark.parametrize("act", ["rename", "pause", "resume"])
def test_matchings_own_columns_are_left_alone(act: str) -> None:
    """The caller's copy is older than what matching wrote meanwhile."""
    one = alert("160", state="paused" if act == "resume" else "armed")
    told = {"last_notified_at": NOW, "last_notified_price": Decimal("155.00")}
    Alert.objects.filter(pk=one.pk).update(**told)
    actions: dict[str, Callable[[], None]] = {
        "rename": lambda: services.change_alert(alert=one, wish=Wish(target=one.target, name="Gift"), now=NOW),
        "pause": lambda: services.pause(alert=one, now=NOW),
        "resume": lambda: services.resume(alert=one, now=NOW),
    }
    actions[act]()
    assert Alert.objects.values(*told).get(pk=one.pk) == told


@pytest.mark.django_db
def test_what_is_deleted_can_be_brought_back_for_some_days_and_is_checked_anew(settings: Any) -> None:
    settings.ALERT_UNDO = timedelta(days=7)
    one, paused = alert("160"), alert("150", state="paused")
    for each in (one, paused):
        services.delete_alert(alert=each, now=NOW)
    services.delete_alert(alert=Alert(pk=10**6), now=NOW)
    assert not Alert.live.exists()
    restored = services.restore(
        user_id=one.user_id, ids=[one.pk, paused.pk, 10**6], now=NOW + timedelta(days=7, seconds=-1)
    )
    assert [each.state for each in restored] == ["pending", "paused"]
    assert [body["alert_id"] for _, body in asked()] == [one.pk]
    services.delete_alert(alert=one, now=NOW)
    assert services.restore(user_id=one.user_id, ids=[one.pk], now=NOW + timedelta(days=7)) == []
    assert services.restore(user_id=person("bob").pk, ids=[one.pk], now=NOW) == []


@pytest.mark.django_db
def test_bringing_back_does_not_lead_past_the_limit(settings: Any) -> None:
    settings.ALERTS_PER_USER = 1
    one = alert("160")
    services.delete_alert(alert=one, now=NOW)
    watch("1")
    with pytest.raises(services.AlertRefusedError, match="the most there can be"):
        services.restore(user_id=one.user_id, ids=[one.pk], now=NOW)


@pytest.mark.django_db(transaction=True)
def test_the_nightly_job_removes_what_was_deleted_too_long_ago_with_its_log_and_mails(settings: Any) -> None:
    settings.ALERT_UNDO = timedelta(days=7)
    now = timezone.now()
    one, kept, other = alert("160"), alert("155"), alert("150")
    for each in (one, other):
        Decision.objects.create(alert=each, event_id="evt_1", outcome="mailed", reason="r")
        Notification.objects.create(
            alert=each, event_id="evt_1", new_price=Decimal(1), target=Decimal(2), merchant_name="X", occurred_at=NOW
        )
    services.delete_alert(alert=one, now=now - timedelta(days=7, minutes=1))
    services.delete_alert(alert=kept, now=now - timedelta(days=6))
    sleeping.purge_deleted(a_run())
    assert set(Alert.objects.all()) == {kept, other}
    assert [row.alert for row in Decision.objects.all()] == [other]
    assert [row.alert for row in Notification.objects.all()] == [other]


@pytest.mark.django_db
def test_an_alert_that_is_gone_can_be_neither_changed_paused_nor_resumed() -> None:
    one = alert("160")
    Alert.objects.filter(pk=one.pk).delete()
    for act in (
        lambda: retarget(one, "1"),
        lambda: services.pause(alert=one, now=NOW),
        lambda: services.resume(alert=one, now=NOW),
    ):
        with pytest.raises(Alert.DoesNotExist):
            act()
    assert asked() == []


# --- At once -----------------------------------------------------------------------------------------------------


def in_thread(act: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["create", "change", "resume"])
def test_who_asks_matching_waits_for_whoever_is_changing_the_wines_price(act: str) -> None:
    """So that the message ids of one wine are in commit order: intake holds this lock while it publishes."""
    one = alert("160", state="paused" if act == "resume" else "armed")
    actions: dict[str, Callable[[], object]] = {
        "create": watch,
        "change": lambda: retarget(one, "1"),
        "resume": lambda: services.resume(alert=one, now=NOW),
    }
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Wine.objects.select_for_update(no_key=True).get(pk="wn_4417")
            held.set()
            assert release.wait(DEADLINE)

    holder = in_thread(hold)
    try:
        assert held.wait(DEADLINE)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
        with pytest.raises(OperationalError, match="lock timeout"):
            actions[act]()
        assert asked() == []
    finally:
        release.set()
        holder.join(DEADLINE)
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    actions[act]()
    assert len(asked()) == 1


@pytest.mark.django_db(transaction=True)
def test_creating_does_not_wait_for_readers_of_the_wine_nor_block_new_offers() -> None:
    """NO KEY UPDATE: a foreign key to the wine, as a first offer of another merchant writes it, is let through."""
    seller, bottle = merchant(), wine()
    with transaction.atomic():
        watch()
        done = threading.Event()

        def offer() -> None:
            Offer.objects.create(
                merchant=seller, wine=bottle, price_usd=Decimal(1), occurred_at=NOW, seen_at=NOW, event_id="evt_1"
            )
            done.set()

        thread = in_thread(offer)
        assert done.wait(DEADLINE)
        thread.join(DEADLINE)


@pytest.mark.django_db(transaction=True)
def test_the_limit_holds_when_one_person_creates_many_at_once(settings: Any) -> None:
    settings.ALERTS_PER_USER = 3
    user, bottles = person(), [wine(str(number)) for number in range(8)]
    together = threading.Barrier(len(bottles), timeout=DEADLINE)
    refused: list[str] = []

    def create(bottle: Wine) -> None:
        together.wait()
        try:
            watch(user=user, wine=bottle)
        except services.AlertRefusedError as error:
            refused.append(str(error))

    threads = [in_thread(lambda bottle=bottle: create(bottle)) for bottle in bottles]  # type: ignore[misc]
    for thread in threads:
        thread.join(DEADLINE)
    assert Alert.objects.count() == 3
    assert len(refused) == 5
    assert len(asked()) == 3


@pytest.mark.django_db(transaction=True)
def test_a_double_click_makes_one_alert() -> None:
    user, bottle = person(), wine()
    together = threading.Barrier(4, timeout=DEADLINE)
    outcomes: list[str] = []

    def create() -> None:
        together.wait()
        try:
            watch(user=user, wine=bottle)
            outcomes.append("created")
        except services.AlreadyWatchedError as error:
            outcomes.append(str(error.alert.pk))

    threads = [in_thread(create) for _ in range(4)]
    for thread in threads:
        thread.join(DEADLINE)
    made = Alert.objects.get()
    assert sorted(outcomes) == sorted(["created", *[str(made.pk)] * 3])
    assert len(asked()) == 1
