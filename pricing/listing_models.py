"""The table of what merchants sell under their own ids. Part of pricing.models, which imports it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from pricing.matching import By
from pricing.money_fields import NATIVE_DIGITS, PRICE_DECIMALS


class Listing(models.Model):
    """One thing a merchant sells under its own id: which wine it is, or that this waits for a person.

    What the merchant last asked for it is kept, so that a price is not lost while its listing waits.
    """

    merchant = models.ForeignKey("pricing.Merchant", on_delete=models.PROTECT, related_name="listings", db_index=False)
    source_id = models.CharField(max_length=200, help_text="The merchant's id of the product or its variant.")
    title = models.CharField(max_length=500)
    name = models.CharField(max_length=500, blank=True, help_text="The title without vintage and size, to compare by.")
    vintage = models.PositiveSmallIntegerField(null=True, blank=True)
    non_vintage = models.BooleanField(default=False, help_text="It says that it is NV.")
    pack = models.PositiveSmallIntegerField(null=True, blank=True)
    size_ml = models.PositiveIntegerField(null=True, blank=True)
    gtin = models.CharField(max_length=14, blank=True, verbose_name="GTIN")
    lwin = models.CharField(max_length=7, blank=True, verbose_name="LWIN")
    said_wine_id = models.CharField(max_length=40, blank=True)
    unclear = models.CharField(max_length=500, blank=True, help_text="What of it cannot be read for certain.")
    wine = models.ForeignKey("pricing.Wine", on_delete=models.PROTECT, null=True, blank=True, related_name="listings")
    matched_by = models.CharField(max_length=10, blank=True, choices=[(by.value, by.value) for by in By])
    price = models.DecimalField(max_digits=NATIVE_DIGITS, decimal_places=PRICE_DECIMALS, null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    occurred_at = models.DateTimeField(null=True, help_text="The merchant's time of what is kept here.")
    set_aside_at = models.DateTimeField(null=True, blank=True, help_text="A person said that it is no wine of ours.")
    in_file = models.BooleanField(default=False, help_text="A catalogue file had it, and none since did not.")
    # Digests of what the last file said it is and asked for it; null when somebody else has said something since.
    file_said = models.BigIntegerField(null=True, editable=False)
    file_asked = models.BigIntegerField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(name="pricing_listing_identity", fields=["merchant", "source_id"]),
            models.CheckConstraint(name="pricing_listing_price", condition=Q(price__isnull=True) | Q(price__gt=0)),
            models.CheckConstraint(
                name="pricing_listing_matched",
                condition=(Q(wine__isnull=True) & Q(matched_by="")) | (Q(wine__isnull=False) & ~Q(matched_by="")),
            ),
            models.CheckConstraint(
                name="pricing_listing_packing",
                condition=Q(pack__isnull=True, size_ml__isnull=True) | Q(pack__gte=1, size_ml__gte=1),
            ),
        )
        indexes = (
            models.Index(
                name="pricing_listing_waiting",
                fields=["created_at"],
                condition=Q(wine__isnull=True, set_aside_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.title} at {self.merchant_id}"
