"""What prices were: a projection of the message log, appended to by the price-history subscription, never edited.

Part of pricing.models, which imports it.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from pricing.money_fields import PRICE_DECIMALS, PRICE_DIGITS


class PriceHistory(models.Model):
    """Every price observed, in the order it was published. Append-only; rebuilt from the message log, never edited."""

    wine = models.ForeignKey(
        "pricing.Wine", on_delete=models.DO_NOTHING, related_name="history", db_constraint=False, db_index=False
    )
    merchant_id = models.CharField(max_length=40)
    price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    observed_at = models.DateTimeField(help_text="The event's occurred_at.")
    event_id = models.TextField()
    late = models.BooleanField(default=False, help_text="Arrived after a newer price: history only.")
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "pricing_pricehistory"
        verbose_name_plural = "price history"
        indexes = (models.Index(name="pricing_history_of_wine", fields=["wine", "observed_at"]),)
        constraints = (models.CheckConstraint(name="pricing_history_price", condition=Q(price_usd__gt=0)),)

    def __str__(self) -> str:
        return f"{self.wine_id} {self.observed_at:%Y-%m-%d}: ${self.price_usd}"


class Availability(models.Model):
    """When a merchant stopped to offer a wine and when it offered it again: the gaps in the price history.

    Append-only and rebuilt from the message log, as the price history is, by the same subscription.
    """

    wine = models.ForeignKey(
        "pricing.Wine", on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    merchant_id = models.CharField(max_length=40)
    price_usd = models.DecimalField(
        max_digits=PRICE_DIGITS,
        decimal_places=PRICE_DECIMALS,
        null=True,
        help_text="What it cost when it came back; empty when it went.",
    )
    observed_at = models.DateTimeField(help_text="The event's occurred_at.")
    event_id = models.TextField()
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "availability"
        indexes = (models.Index(name="pricing_availability_of_wine", fields=["wine", "observed_at"]),)
        constraints = (
            models.CheckConstraint(
                name="pricing_availability_price", condition=Q(price_usd__isnull=True) | Q(price_usd__gt=0)
            ),
        )

    def __str__(self) -> str:
        return f"{self.wine_id} {self.observed_at:%Y-%m-%d}: {'gone' if self.price_usd is None else 'back'}"
