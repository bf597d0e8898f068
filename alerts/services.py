"""What people do with their alerts. Each function is one transaction; where matching must look again, it publishes so.

Guarantee: an alert in state pending and the message that gets it looked at are committed together. Locks, in this
order: the user (where a limit must hold), the wines in id order (before publishing, so that messages of a wine keep
their order), the alerts in id order. Called by the views, by sleeping.py and by the demo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Q

from alerts.amounts import Amounts
from alerts.events import ALERT_CREATED
from alerts.models import Alert
from jobs.messages import NewMessage
from jobs.outbox import publish
from pricing.contract import PRICE_CURRENCY
from pricing.models import Merchant, Wine
from pricing.selectors import best_offer, cheapest_offers

CENT = Decimal("0.01")


class AlertRefusedError(Exception):
    """The alert cannot be had; the message says why, in the reader's words, `field` what of the wish is wrong."""

    def __init__(self, why: str, *, field: str = "target") -> None:
        super().__init__(why)
        self.field = field


class AlreadyWatchedError(AlertRefusedError):
    """The same alert exists: the same person, wine, merchant and wish. A double click ends here."""

    def __init__(self, alert: Alert) -> None:
        super().__init__("You already watch this wine like that.")
        self.alert = alert


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody waits for: a `target`, `percent` below today's price, a low of `low_days` (or ever), a return."""

    kind: Alert.Kind = Alert.Kind.THRESHOLD
    target: Decimal | None = None
    percent: Decimal | None = None
    low_days: int | None = None
    currency: str = PRICE_CURRENCY
    merchant: Merchant | None = None
    name: str = ""
    expires_at: datetime | None = None


def create_alert(*, user: AbstractBaseUser, wine: Wine, wish: Wish, now: datetime) -> Alert:
    """Watch a wine. Raises AlertRefusedError: too many alerts, a wine no longer listed, or one watched already."""
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)
        (wine,) = _lock_wines([wine.pk])
        if wine.retired_at:
            raise AlertRefusedError("This wine is no longer listed, so its price will not change.")
        price = _price_now(wine, wish)
        facts = _facts(wish, price)
        _refuse_another(user.pk, wine.pk, wish.currency, facts)
        _refuse_too_many(user.pk)
        alert = Alert.objects.create(
            user_id=user.pk,
            wine=wine,
            currency=wish.currency,
            state=Alert.State.PENDING,
            created_at=now,
            price_when_created=price,
            **facts,
        )
        _ask_matching([alert])
    return alert


def change_alert(*, alert: Alert, wish: Wish, now: datetime) -> None:
    """Wait for something else; matching looks at once, unless the alert is paused, which it stays.

    The currency stays what it is. A percentage is of the price now, if it is another than before. What is the same
    again, or only renamed, is not looked at. Raises Alert.DoesNotExist if the alert is gone, AlertRefusedError as
    create_alert does.
    """
    with transaction.atomic():
        (wine,) = _lock_wines([alert.wine_id])
        stored = Alert.live.select_for_update().get(pk=alert.pk)
        same_part = (
            wish.kind == Alert.Kind.PERCENT and wish.percent == stored.percent and wish.merchant == stored.merchant
        )
        facts = _facts(wish, stored.target if same_part else _price_now(wine, wish), is_target=same_part)
        _refuse_another(stored.user_id, stored.wine_id, stored.currency, facts, but=stored.pk)
        waits_anew = any(facts[name] != getattr(stored, name) for name in ("kind", "target", "low_days", "merchant"))
        was_over = stored.expires_at is not None and stored.expires_at <= now
        if waits_anew:
            # What was told was about another target: neither a cooldown nor a further fall goes by it.
            facts |= {"last_notified_at": None, "last_notified_price": None}
        if waits_anew or was_over:
            facts |= _pending(stored)
        _update(alert, **facts)
        if (waits_anew or was_over) and stored.state != Alert.State.PAUSED:
            _ask_matching([alert])


def pause(*, alert: Alert, now: datetime) -> None:
    """Neither compare nor mail until it is resumed. Raises Alert.DoesNotExist if it is gone."""
    _act(alert, act_on_pause, now)


def resume(*, alert: Alert, now: datetime) -> None:
    """Watch again, beginning with the price now, also before a snooze is over; else nothing happens.

    Raises Alert.DoesNotExist if it is gone.
    """
    _act(alert, act_on_resume, now)


def snooze(*, alert: Alert, until: datetime, now: datetime) -> None:
    """No mail until then; what is met by then is told. Nothing happens to a paused alert."""
    _act(alert, snoozing(until), now)


def snooze_until_rise(*, alert: Alert, now: datetime) -> None:
    """No further mail until the price has risen above the target. Raises AlertRefusedError unless it has been told."""
    with transaction.atomic():
        stored = Alert.live.select_for_update(no_key=True).get(pk=alert.pk)
        if stored.state != Alert.State.FIRED or stored.kind == Alert.Kind.BACK:
            raise AlertRefusedError("The price has not been told to you, so there is nothing that could rise.")
        _update(alert, snoozed_until=None, snoozed_until_rise=True)


def delete_alert(*, alert: Alert, now: datetime) -> None:
    """Hear nothing more of it. It can be brought back for ALERT_UNDO; quiet if it is gone already."""
    Alert.live.filter(pk=alert.pk).update(deleted_at=now)


def restore(*, user_id: int, ids: Iterable[int], now: datetime) -> list[Alert]:
    """Bring back what this person deleted, as far as it is still there; it is compared with the price now.

    Raises AlertRefusedError if there would be too many.
    """
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=user_id)
        there = Q(pk__in=list(ids), user_id=user_id, deleted_at__gt=now - settings.ALERT_UNDO)
        _lock_wines(Alert.objects.filter(there).values_list("wine_id", flat=True))
        alerts = list(Alert.objects.filter(there).select_for_update(no_key=True, of=("self",)).order_by("pk"))
        _refuse_too_many(user_id, more=len(alerts))
        for alert in alerts:
            _update(alert, deleted_at=None, **_pending(alert))
        _ask_matching([alert for alert in alerts if alert.state == Alert.State.PENDING])
    return alerts


Act = Callable[[Alert, datetime], bool]  # changes a locked alert; whether matching has to look


def act_on(*, user_id: int, ids: Iterable[int], act: Act, now: datetime) -> list[int]:
    """Do the same to several of a person's alerts; the ids of those that it was done to. Others' are passed over."""
    with transaction.atomic():
        alerts = _lock_alerts(ids, user_id=user_id)
        _ask_matching([alert for alert in alerts if act(alert, now)])
    return [alert.pk for alert in alerts]


def act_on_pause(alert: Alert, now: datetime) -> bool:
    _update(alert, state=Alert.State.PAUSED, snoozed_until=None, snoozed_until_rise=False)
    return False


def act_on_resume(alert: Alert, now: datetime) -> bool:
    if alert.state != Alert.State.PAUSED and not alert.snoozed_until and not alert.snoozed_until_rise:
        return False
    _update(alert, snoozed_until=None, **_pending(alert, anyway=True))
    return True


def act_on_delete(alert: Alert, now: datetime) -> bool:
    _update(alert, deleted_at=now)
    return False


def snoozing(until: datetime) -> Act:
    def act(alert: Alert, now: datetime) -> bool:
        if alert.state != Alert.State.PAUSED:
            _update(alert, snoozed_until=until, snoozed_until_rise=False)
        return False

    return act


def end_snoozes(*, now: datetime) -> int:
    """Have alerts looked at whose snooze is over, at most ALERT_WAKE_CHUNK; how many there were."""
    over = Alert.objects.filter(snoozed_until__lte=now).order_by("pk")
    with transaction.atomic():
        ids = list(over.values_list("pk", flat=True)[: settings.ALERT_WAKE_CHUNK])
        _lock_wines(Alert.objects.filter(pk__in=ids).values_list("wine_id", flat=True))
        alerts = list(over.filter(pk__in=ids).select_for_update(no_key=True, of=("self",)))
        woken = [alert for alert in alerts if alert.state != Alert.State.PAUSED and alert.deleted_at is None]
        Alert.objects.filter(pk__in=[alert.pk for alert in alerts]).update(snoozed_until=None)
        Alert.objects.filter(pk__in=[alert.pk for alert in woken]).update(state=Alert.State.PENDING)
        _ask_matching(woken)
    return len(alerts)


def _act(alert: Alert, act: Act, now: datetime) -> None:
    with transaction.atomic():
        found = _lock_alerts([alert.pk], user_id=None)
        if not found:
            raise Alert.DoesNotExist
        _ask_matching([one for one in found if act(one, now)])
    alert.refresh_from_db()


def _lock_wines(wine_ids: Iterable[str]) -> list[Wine]:
    return list(Wine.objects.select_for_update(no_key=True).filter(pk__in=set(wine_ids)).order_by("pk"))


def _lock_alerts(ids: Iterable[int], *, user_id: int | None) -> list[Alert]:
    """Those that are not deleted, with their wines locked before them; `user_id` None: whoever's they are."""
    wanted = Q(pk__in=list(ids)) if user_id is None else Q(pk__in=list(ids), user_id=user_id)
    _lock_wines(Alert.live.filter(wanted).values_list("wine_id", flat=True))
    return list(Alert.live.filter(wanted).select_for_update(no_key=True, of=("self",)).order_by("pk"))


def _update(alert: Alert, **columns: object) -> None:
    """Write these columns only: matching writes others of the same row at the same time."""
    Alert.objects.filter(pk=alert.pk).update(**columns)
    alert.refresh_from_db(fields=list(columns))


def _pending(alert: Alert, *, anyway: bool = False) -> dict[str, object]:
    """The columns of an alert that is to be looked at; a paused one stays so, unless `anyway`."""
    if alert.state == Alert.State.PAUSED and not anyway:
        return {}
    return {"state": Alert.State.PENDING, "snoozed_until_rise": False}


def _ask_matching(alerts: Sequence[Alert]) -> None:
    publish(
        [
            NewMessage(type=ALERT_CREATED, key=alert.wine_id, body={"alert_id": alert.pk, "wine_id": alert.wine_id})
            for alert in alerts
        ]
    )


def _price_now(wine: Wine, wish: Wish) -> Decimal | None:
    """The best relevant offer in the wish's currency. Raises AlertRefusedError for a currency nobody can convert."""
    merchant_id = wish.merchant.pk if wish.merchant else None
    offer = best_offer(cheapest_offers([wine.pk]), wine_id=wine.pk, merchant_id=merchant_id)
    if offer is None:
        return None
    day = offer.occurred_at.astimezone(UTC).date()
    amounts = Amounts([wish.currency], [day])
    price = amounts.of(wish.currency, offer.price_usd, day, offer.native_price, offer.native_currency)
    if price is None:
        raise AlertRefusedError(
            f"No exchange rate of {wish.currency} is known. Choose another currency.", field="currency"
        )
    return price


def _facts(wish: Wish, price: Decimal | None, *, is_target: bool = False) -> dict[str, object]:
    """The columns that a wish comes to. `is_target`: `price` is the target that the same percentage came to before."""
    facts: dict[str, object] = {
        "kind": wish.kind,
        "target": wish.target if wish.kind == Alert.Kind.THRESHOLD else None,
        "percent": None,
        "low_days": wish.low_days if wish.kind == Alert.Kind.LOW else None,
        "merchant": wish.merchant,
        "name": wish.name,
        "expires_at": wish.expires_at,
    }
    if wish.kind == Alert.Kind.PERCENT:
        if price is None or wish.percent is None:
            raise AlertRefusedError(
                "Nobody offers it now, so there is no price to be below. Wait for a price of your choice instead.",
                field="percent",
            )
        below = price if is_target else (price * (1 - wish.percent / 100)).quantize(CENT, ROUND_HALF_UP)
        facts |= {"percent": wish.percent, "target": max(below, CENT)}
    return facts


def _refuse_another(
    user_id: int, wine_id: str, currency: str, facts: dict[str, object], *, but: int | None = None
) -> None:
    identity = {"currency": currency} | {name: facts[name] for name in ("kind", "target", "low_days", "merchant")}
    same = Alert.live.filter(user_id=user_id, wine_id=wine_id, **identity).exclude(pk=but or 0).first()
    if same:
        raise AlreadyWatchedError(same)


def _refuse_too_many(user_id: int, *, more: int = 1) -> None:
    if Alert.live.filter(user_id=user_id).count() + more > settings.ALERTS_PER_USER:
        raise AlertRefusedError(
            f"You have {settings.ALERTS_PER_USER:,} alerts, which is the most there can be. Delete one first."
        )
