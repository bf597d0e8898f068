"""Wines, merchants and what they ask: the source of truth for a price is the offer row, written at feed intake.

The other tables of this app are in modules beside this one, which imports them.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from pricing import lookups
from pricing.catalogue_models import CatalogueFile, CataloguePiece, CatalogueRemark, CatalogueSettings
from pricing.feed_models import FeedAnswer, FeedKey, FeedRate, IgnoredWebhook, RawBody, SigningSecret
from pricing.history_models import Availability, PriceHistory
from pricing.listing_models import Listing
from pricing.money_fields import (
    NATIVE_DIGITS,
    PRICE_DECIMALS,
    PRICE_DIGITS,
    native_is_whole,
    tax_field,
    tax_is_known,
    validate_currency,
)
from pricing.projection_models import DailyPrice, SearchWord, WineDocument

__all__ = [
    "PRICE_DECIMALS",
    "PRICE_DIGITS",
    "Availability",
    "CatalogueFile",
    "CataloguePiece",
    "CatalogueRemark",
    "CatalogueSettings",
    "DailyPrice",
    "ExchangeRate",
    "FeedAnswer",
    "FeedKey",
    "FeedRate",
    "HeldPrice",
    "IgnoredWebhook",
    "Listing",
    "Merchant",
    "Offer",
    "PriceHistory",
    "RawBody",
    "SearchWord",
    "SigningSecret",
    "Wine",
    "WineDocument",
    "lookups",
    "validate_currency",
]


class ExchangeRate(models.Model):
    """What one euro was worth on a day, as the ECB publishes it. Written by `manage.py load_rates`."""

    currency = models.CharField(max_length=3)
    day = models.DateField()
    per_eur = models.DecimalField(max_digits=18, decimal_places=8, help_text="Units of the currency for one euro.")
    source = models.CharField(max_length=40)

    class Meta:
        ordering = ("-day", "currency")
        constraints = (
            # In this order it is also the index that finds the last day before another.
            models.UniqueConstraint(name="pricing_exchangerate_identity", fields=["currency", "day"]),
            models.CheckConstraint(name="pricing_exchangerate_positive", condition=Q(per_eur__gt=0)),
        )

    def __str__(self) -> str:
        return f"{self.day}: 1 EUR = {self.per_eur} {self.currency}"


class Merchant(models.Model):
    id = models.CharField(primary_key=True, max_length=40, help_text="mch_ and a name or number of your choice.")
    name = models.CharField(max_length=120, unique=True)
    website = models.URLField(blank=True)
    currency = models.CharField(
        max_length=3,
        blank=True,
        validators=[validate_currency],
        help_text="ISO 4217 code of the prices that come without one, such as a shop's.",
    )
    unsaid_size_ml = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The bottle of a listing that names none, often 750. Empty: such listings wait for a person.",
    )
    tax = tax_field("What the prices are that do not say it themselves. Shown with the offers.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(name="pricing_merchant_id", condition=Q(id__regex=r"^mch_[a-z0-9_]+$")),
            tax_is_known("pricing_merchant_tax"),
        )

    def __str__(self) -> str:
        return self.name


class Wine(models.Model):
    class Colour(models.TextChoices):
        RED = "red", "Red"
        WHITE = "white", "White"
        ROSE = "rose", "Rosé"
        SPARKLING = "sparkling", "Sparkling"
        SWEET = "sweet", "Sweet"
        FORTIFIED = "fortified", "Fortified"

    id = models.CharField(primary_key=True, max_length=40, help_text="wn_ and a number.")
    name = models.CharField(max_length=200)
    producer = models.CharField(max_length=200)
    vintage = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Empty means non-vintage (NV).")
    size_ml = models.PositiveIntegerField(default=750)
    colour = models.CharField(max_length=10, choices=Colour)
    country = models.CharField(max_length=80)
    region = models.CharField(max_length=120, blank=True)
    gtin = models.CharField(
        max_length=14, blank=True, verbose_name="GTIN", help_text="The bottle's bar code, 14 digits."
    )
    lwin = models.CharField(max_length=7, blank=True, verbose_name="LWIN", help_text="Its first seven digits.")
    retired_at = models.DateTimeField(null=True, blank=True, help_text="No longer listed; feeds are told so.")
    created_at = models.DateTimeField(db_default=Now())
    # matching.Candidate.names in SQL, kept by the server whoever writes the row: what listings are found by.
    names = models.GeneratedField(
        expression=Func(F("name"), F("producer"), F("region"), function="pricing_wine_names"),
        output_field=ArrayField(models.TextField()),
        db_persist=True,
    )
    # The words of them all, each once: what wines are suggested by.
    words = models.GeneratedField(
        expression=Func(F("name"), F("producer"), F("region"), function="pricing_wine_words"),
        output_field=ArrayField(models.TextField()),
        db_persist=True,
    )

    class Meta:
        ordering = ("name", "vintage")
        indexes = (
            GinIndex(name="pricing_wine_by_names", fields=["names"]),
            GinIndex(name="pricing_wine_by_words", fields=["words"]),
            models.Index(name="pricing_wine_by_gtin", fields=["gtin"], condition=~Q(gtin="")),
            models.Index(name="pricing_wine_by_lwin", fields=["lwin"], condition=~Q(lwin="")),
            models.Index(name="pricing_wine_by_vintage", fields=["vintage"]),
        )
        constraints = (
            models.CheckConstraint(name="pricing_wine_gtin", condition=Q(gtin__regex=r"^([0-9]{14})?$")),
            models.CheckConstraint(name="pricing_wine_lwin", condition=Q(lwin__regex=r"^([0-9]{7})?$")),
            models.CheckConstraint(name="pricing_wine_id", condition=Q(id__regex=r"^wn_[A-Za-z0-9_]+$")),
            models.CheckConstraint(name="pricing_wine_size", condition=Q(size_ml__gte=50, size_ml__lte=30_000)),
            models.CheckConstraint(
                name="pricing_wine_vintage", condition=Q(vintage__isnull=True) | Q(vintage__gte=1700, vintage__lte=2200)
            ),
        )

    def __str__(self) -> str:
        return self.full_name

    @property
    def full_name(self) -> str:
        return full_name(self.name, self.vintage)


def full_name(name: str, vintage: int | None) -> str:
    """A wine as on the label and in mails: “Ch. Montrose 2016”, “Krug Grande Cuvée NV”."""
    return f"{name} {vintage or 'NV'}"


class Offer(models.Model):
    """What a merchant asks for a wine now. `occurred_at` is the merchant's clock; later wins, earlier is history."""

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="offers")
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT, related_name="offers", db_index=False)
    price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    occurred_at = models.DateTimeField(help_text="When the merchant says this price came to be.")
    event_id = models.TextField(help_text="The event that announced this price.")
    updated_at = models.DateTimeField(db_default=Now(), help_text="When we last changed this row.")
    seen_at = models.DateTimeField(help_text="The latest time the merchant confirmed this price, or its absence.")
    native_price = models.DecimalField(
        max_digits=NATIVE_DIGITS,
        decimal_places=PRICE_DECIMALS,
        null=True,
        blank=True,
        help_text="What the merchant asks, where that is not dollars.",
    )
    native_currency = models.CharField(max_length=3, blank=True, db_default="")
    withdrawn_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when it is not offered. The price is what it was."
    )
    tax = tax_field("Whether the price has tax in it; empty where nobody said.")

    class Meta:
        constraints = (
            tax_is_known("pricing_offer_tax"),
            models.UniqueConstraint(name="pricing_offer_identity", fields=["wine", "merchant"]),
            models.CheckConstraint(name="pricing_offer_price", condition=Q(price_usd__gt=0)),
            native_is_whole("pricing_offer_native"),
        )

    def __str__(self) -> str:
        return f"{self.wine_id} at {self.merchant_id}: ${self.price_usd}"


class HeldPrice(models.Model):
    """A price that cannot stand unasked: too far from the last one, or in a currency without a rate.

    A person releases or rejects it; what lacks a rate is also released by itself when the rate is loaded.
    """

    class Cause(models.TextChoices):
        JUMP = "jump", "Far from the last price"
        NO_RATE = "no_rate", "No exchange rate"

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT)
    cause = models.CharField(max_length=10, choices=Cause, default=Cause.JUMP, db_default="jump")
    price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True, blank=True)
    native_price = models.DecimalField(
        max_digits=NATIVE_DIGITS,
        decimal_places=PRICE_DECIMALS,
        null=True,
        blank=True,
        help_text="What the merchant asks, where that is not dollars.",
    )
    native_currency = models.CharField(max_length=3, blank=True, db_default="")
    tax = tax_field("Whether the price has tax in it; empty where nobody said.")
    last_price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True, blank=True)
    occurred_at = models.DateTimeField()
    seen_at = models.DateTimeField(null=True, blank=True, help_text="When the merchant last said it again meanwhile.")
    reason = models.CharField(max_length=200)
    attributes = models.JSONField(default=dict, db_default={}, help_text="For the event, if it is released.")
    held_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-held_at",)
        indexes = (models.Index(name="pricing_heldprice_of_wine", fields=["merchant", "wine"]),)
        constraints = (
            native_is_whole("pricing_heldprice_native"),
            tax_is_known("pricing_heldprice_tax"),
            models.CheckConstraint(
                name="pricing_heldprice_price",
                condition=Q(price_usd__isnull=False) | Q(native_price__isnull=False),
            ),
        )

    def __str__(self) -> str:
        said = f"{self.native_currency} {self.native_price}" if self.native_currency else f"${self.price_usd}"
        after = f" after ${self.last_price_usd}" if self.last_price_usd is not None else ""
        return f"{self.wine_id} at {self.merchant_id}: {said}{after}"
