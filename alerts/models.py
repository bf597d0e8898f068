"""Who hears about which price: alerts, every decision about them, and the one mail per (alert, event)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from alerts.channels.models import AtomFeed, Channel, ChannelDelivery
from alerts.digest.models import Digest, DigestWeek
from alerts.mail_models import MailWish, Suppression
from pricing.contract import PRICE_CURRENCY
from pricing.models import Merchant, Wine
from pricing.money_fields import NATIVE_DIGITS, PRICE_DECIMALS, PRICE_DIGITS

__all__ = [
    "Alert",
    "AtomFeed",
    "Channel",
    "ChannelDelivery",
    "Decision",
    "Digest",
    "DigestWeek",
    "MailWish",
    "Notification",
    "SeenPrice",
    "Suppression",
]


class Live(models.Manager["Alert"]):
    """The alerts that their owners have not deleted: what pages, mails and counts go by."""

    def get_queryset(self) -> models.QuerySet[Alert]:
        return super().get_queryset().filter(deleted_at__isnull=True)


def money(**options: Any) -> models.DecimalField[Any, Any]:
    """An amount in an alert's currency."""
    return models.DecimalField(max_digits=NATIVE_DIGITS, decimal_places=PRICE_DECIMALS, **options)


class Alert(models.Model):
    """“Tell me when this wine is at or below this price”, or at a new low, or back. The state machine is in rules.py.

    Amounts are in the alert's own currency, which never changes. Beside the state stand what hushes an alert without
    ending it: a snooze, an expiry, a deletion that can be undone.
    """

    class Kind(models.TextChoices):
        THRESHOLD = "threshold", "At a price or below"
        PERCENT = "percent", "Some per cent below today’s price"
        LOW = "low", "At a new low"
        BACK = "back", "Back in stock"

    class State(models.TextChoices):
        PENDING = "pending", "Checking"  # created; matching has not looked at the current price yet
        ARMED = "armed", "Watching"  # the price is above the target, or has been since the last mail
        FIRED = "fired", "Met"  # the owner was told; it arms again when the price rises above the target
        PAUSED = "paused", "Paused"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alerts")
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT, related_name="alerts", db_index=False)
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, blank=True, db_index=False, help_text="Empty: any merchant."
    )
    name = models.CharField(max_length=80, blank=True, db_default="", help_text="What its owner calls it.")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.THRESHOLD, db_default="threshold")
    currency = models.CharField(max_length=3, default=PRICE_CURRENCY, db_default=PRICE_CURRENCY)
    target = money(null=True, blank=True, help_text="Of a price to wait for; a percentage comes to one when it is set.")
    percent = models.DecimalField(max_digits=4, decimal_places=1, null=True, blank=True)
    low_days = models.PositiveIntegerField(null=True, blank=True, help_text="A low of how many days; empty: ever.")
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    snoozed_until = models.DateTimeField(null=True, blank=True)
    snoozed_until_rise = models.BooleanField(default=False, db_default=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True, help_text="It can be brought back for some days.")
    created_at = models.DateTimeField(db_default=Now())
    price_when_created = money(null=True)
    last_notified_price = money(null=True)
    last_notified_at = models.DateTimeField(null=True)

    objects = models.Manager()
    live = Live()

    class Meta:
        ordering = ("-id",)
        indexes = (
            # Matching asks: which alerts of these wines can this price move? The state and the target narrow it.
            models.Index(
                name="alerts_alert_to_match",
                fields=["wine", "state", "currency", "target"],
                condition=~Q(state="paused") & Q(deleted_at__isnull=True),
            ),
            # ... and those without a target, with the windows of lows that it has to look at.
            models.Index(
                name="alerts_alert_without_target",
                fields=["wine", "merchant", "low_days"],
                condition=Q(target__isnull=True, deleted_at__isnull=True),
            ),
            # ... and which currencies there are at all, besides dollars.
            models.Index(name="alerts_alert_currency", fields=["currency"], condition=~Q(currency=PRICE_CURRENCY)),
            # Who deletes a merchant asks: which alerts name it? Most name none, and what fires costs an entry in each.
            models.Index(name="alerts_alert_merchant", fields=["merchant"], condition=Q(merchant__isnull=False)),
            # The jobs ask: which snoozes are over, which deletions past undoing?
            models.Index(
                name="alerts_alert_snoozed", fields=["snoozed_until"], condition=Q(snoozed_until__isnull=False)
            ),
            models.Index(name="alerts_alert_deleted", fields=["deleted_at"], condition=Q(deleted_at__isnull=False)),
        )
        constraints = (
            models.CheckConstraint(
                name="alerts_alert_waits_for_something",
                # A CHECK lets pass what it cannot tell, so NULL is named wherever it would be none.
                condition=Q(kind="threshold", target__isnull=False, percent__isnull=True, low_days__isnull=True)
                | Q(kind="percent", target__isnull=False, percent__isnull=False, low_days__isnull=True)
                | Q(kind="low", target__isnull=True, percent__isnull=True)
                & (Q(low_days__isnull=True) | Q(low_days__gt=0))
                | Q(kind="back", target__isnull=True, percent__isnull=True, low_days__isnull=True),
            ),
            models.CheckConstraint(name="alerts_alert_target", condition=Q(target__gt=0)),
            models.CheckConstraint(name="alerts_alert_percent", condition=Q(percent__gt=0, percent__lt=100)),
            models.CheckConstraint(name="alerts_alert_currency_code", condition=Q(currency__regex=r"^[A-Z]{3}$")),
            models.CheckConstraint(
                # What is there when somebody begins to wait for its return is met, and was not told.
                name="alerts_alert_fired_means_notified",
                condition=~Q(state="fired")
                | Q(kind="back")
                | Q(last_notified_at__isnull=False, last_notified_price__isnull=False),
            ),
            models.CheckConstraint(
                # Only what was told can rise again; and an alert is snoozed in one way at a time.
                name="alerts_alert_snoozed_until_rise",
                condition=Q(snoozed_until_rise=False) | Q(state="fired", snoozed_until__isnull=True),
            ),
        )

    def __str__(self) -> str:
        waits_for = f"{self.currency} {self.target} or less" if self.target is not None else self.get_kind_display()
        return f"{self.wine_id}: {waits_for}"


class SeenPrice(models.Model):
    """What a wine cost at a merchant as matching has consumed it: the offer, but never ahead of the events.

    Judging by the offers themselves would let a price whose event still waits decide what an earlier one did.
    """

    wine = models.ForeignKey(Wine, on_delete=models.CASCADE, db_index=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, db_index=False)
    price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    withdrawn = models.BooleanField(
        default=False, db_default=False, help_text="It is not offered; the price is what it was."
    )
    native_price = money(null=True, help_text="What the merchant asks, where that is not dollars.")
    native_currency = models.CharField(max_length=3, blank=True, db_default="", default="")
    occurred_at = models.DateTimeField()
    event_id = models.TextField()

    class Meta:
        constraints = (models.UniqueConstraint(name="alerts_seenprice_identity", fields=["wine", "merchant"]),)

    def __str__(self) -> str:
        return f"{self.wine_id} at {self.merchant_id}: ${self.price_usd}"


class Decision(models.Model):
    """What matching made of one event for one alert, and why. Append-only; shown on the alert's page."""

    class Outcome(models.TextChoices):
        MAILED = "mailed", "mailed"
        NOT_MAILED = "not_mailed", "not mailed"
        ARMED = "armed", "watching again"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="decisions", db_index=False)
    event_id = models.TextField()
    outcome = models.CharField(max_length=12, choices=Outcome)
    reason = models.CharField(max_length=200, help_text="In the reader's words.")
    price = money(null=True, help_text="In the alert's currency; empty where nothing was asked, or no rate is known.")
    merchant_name = models.CharField(max_length=120, blank=True)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(name="alerts_decision_identity", fields=["alert", "event_id"]),)
        # What was decided on one event: its journey.
        indexes = (models.Index(name="alerts_decision_event", fields=["event_id"]),)

    def __str__(self) -> str:
        return f"{self.alert_id} {self.event_id}: {self.outcome}"


class Notification(models.Model):
    """One mail about one alert and one event, for ever: the unique constraint says so.

    Carries all that the mail says, so that it reads the same however late it is sent.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "on its way"
        SENT = "sent", "handed to the mail server"
        UNWANTED = "unwanted", "not sent: no longer wanted"
        REFUSED = "refused", "not sent: your address takes no mail"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="notifications", db_index=False)
    event_id = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    currency = models.CharField(max_length=3, default=PRICE_CURRENCY, db_default=PRICE_CURRENCY)
    old_price = money(null=True)
    new_price = money()
    target = money(null=True, help_text="As it was then; empty where the alert waits for no price.")
    reason = models.CharField(max_length=200, blank=True, db_default="", help_text="In the reader's words.")
    merchant_name = models.CharField(max_length=120)
    occurred_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True, help_text="When its owner marked it as read.")

    class Meta:
        ordering = ("-id",)
        # What the pages count for whoever is signed in.
        indexes = (models.Index(name="alerts_notification_unread", fields=["alert"], condition=Q(read_at=None)),)
        constraints = (
            models.UniqueConstraint(name="alerts_notification_identity", fields=["alert", "event_id"]),
            models.CheckConstraint(
                name="alerts_notification_settled", condition=Q(state="queued") ^ Q(settled_at__isnull=False)
            ),
        )

    def __str__(self) -> str:
        return f"{self.alert_id} {self.event_id}: {self.state}"
