"""Who hears about which price: alerts, every decision about them, and the one mail per (alert, event)."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from alerts.channels.models import AtomFeed, Channel, ChannelDelivery
from alerts.digest.models import Digest, DigestWeek
from alerts.mail_models import MailWish, Suppression
from pricing.models import PRICE_DECIMALS, PRICE_DIGITS, Merchant, Wine

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


class Alert(models.Model):
    """“Tell me when this wine is at or below this price.” The state machine is in rules.py."""

    class State(models.TextChoices):
        PENDING = "pending", "Checking"  # created; matching has not looked at the current price yet
        ARMED = "armed", "Watching"  # the price is above the target, or has been since the last mail
        FIRED = "fired", "Met"  # the owner was told; it arms again when the price rises above the target
        PAUSED = "paused", "Paused"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alerts")
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT, related_name="alerts", db_index=False)
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, blank=True, help_text="Empty: any merchant."
    )
    threshold_usd = models.DecimalField("target", max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    created_at = models.DateTimeField(db_default=Now())
    price_when_created_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True)
    last_notified_price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True)
    last_notified_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            # Matching asks: which alerts of these wines can this price move?
            models.Index(
                name="alerts_alert_matching",
                fields=["wine", "state", "threshold_usd"],
                condition=~Q(state="paused"),
            ),
        )
        constraints = (
            models.CheckConstraint(name="alerts_alert_threshold", condition=Q(threshold_usd__gt=0)),
            models.CheckConstraint(
                name="alerts_alert_fired_means_notified",
                condition=~Q(state="fired") | Q(last_notified_at__isnull=False, last_notified_price_usd__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.wine_id} at ${self.threshold_usd} or less"


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
    price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True)
    merchant_name = models.CharField(max_length=120, blank=True)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(name="alerts_decision_identity", fields=["alert", "event_id"]),)

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
    old_price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True)
    new_price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    threshold_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
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
