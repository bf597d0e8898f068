"""What people do with their alerts. Each function is one transaction; where matching must look again, it publishes so.

Guarantee: an alert in state pending and the message that gets it looked at are committed together. Locks, in this
order: the user (creation only, so that the limit holds), the wine (before publishing, so that messages of a wine keep
their order), the alert. Called by the views and the demo.
"""

from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from alerts.events import ALERT_CREATED
from alerts.models import Alert
from jobs.messages import NewMessage
from jobs.outbox import publish
from pricing.models import Merchant, Wine
from pricing.selectors import best_offer, cheapest_offers


class AlertRefusedError(Exception):
    """The alert cannot be had; the message says why, in the reader's words."""


class AlreadyWatchedError(AlertRefusedError):
    """The same alert exists: the same person, wine, merchant and target. A double click ends here."""

    def __init__(self, alert: Alert) -> None:
        super().__init__("You already watch this wine at this target.")
        self.alert = alert


def create_alert(
    *, user: AbstractBaseUser, wine: Wine, threshold_usd: Decimal, merchant: Merchant | None = None, now: datetime
) -> Alert:
    """Watch a wine. Raises AlertRefusedError: too many alerts, a wine no longer listed, or one watched already."""
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)
        wine = _lock(wine.pk)
        if wine.retired_at:
            raise AlertRefusedError("This wine is no longer listed, so its price will not change.")
        mine = Alert.objects.filter(user_id=user.pk)
        same = mine.filter(wine=wine, merchant=merchant, threshold_usd=threshold_usd).first()
        if same:
            raise AlreadyWatchedError(same)
        if mine.count() >= settings.ALERTS_PER_USER:
            raise AlertRefusedError(
                f"You have {settings.ALERTS_PER_USER:,} alerts, which is the most there can be. Delete one first."
            )
        offer = best_offer(cheapest_offers([wine.pk]), wine_id=wine.pk, merchant_id=merchant.pk if merchant else None)
        alert = Alert.objects.create(
            user_id=user.pk,
            wine=wine,
            merchant=merchant,
            threshold_usd=threshold_usd,
            state=Alert.State.PENDING,
            created_at=now,
            price_when_created_usd=offer.price_usd if offer else None,
        )
        _ask_matching(alert)
    return alert


def change_target(*, alert: Alert, threshold_usd: Decimal) -> None:
    """Wait for another price; matching looks at once, unless the alert is paused, which it stays.

    The same target again changes nothing. Raises Alert.DoesNotExist if the alert is gone.
    """
    with transaction.atomic():
        _lock(alert.wine_id)
        stored = Alert.objects.select_for_update().get(pk=alert.pk)
        if stored.threshold_usd == threshold_usd:
            return
        _update(alert, threshold_usd=threshold_usd)
        if stored.state != Alert.State.PAUSED:
            _update(alert, state=Alert.State.PENDING)
            _ask_matching(alert)


def pause(*, alert: Alert) -> None:
    """Neither compare nor mail until it is resumed. Raises Alert.DoesNotExist if it is gone."""
    _update(alert, state=Alert.State.PAUSED)


def resume(*, alert: Alert) -> None:
    """Watch again, beginning with the price now; nothing happens to an alert that is not paused.

    Raises Alert.DoesNotExist if it is gone.
    """
    with transaction.atomic():
        _lock(alert.wine_id)
        if Alert.objects.select_for_update().get(pk=alert.pk).state == Alert.State.PAUSED:
            _update(alert, state=Alert.State.PENDING)
            _ask_matching(alert)


def delete_alert(*, alert: Alert) -> None:
    """Forget the alert, what was decided about it and its mails; quiet if it is gone already."""
    Alert.objects.filter(pk=alert.pk).delete()


def _lock(wine_id: str) -> Wine:
    return Wine.objects.select_for_update(no_key=True).get(pk=wine_id)


def _update(alert: Alert, **columns: object) -> None:
    """Write these columns only: matching writes others of the same row at the same time."""
    Alert.objects.filter(pk=alert.pk).update(**columns)
    alert.refresh_from_db(fields=list(columns))


def _ask_matching(alert: Alert) -> None:
    body = {"alert_id": alert.pk, "wine_id": alert.wine_id}
    publish([NewMessage(type=ALERT_CREATED, key=alert.wine_id, body=body)])
