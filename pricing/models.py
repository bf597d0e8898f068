"""Wines, merchants and what they ask: the source of truth for a price is the offer row, written at feed intake.

pricing_pricehistory is a projection of the message log, appended to by the price-history subscription.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

# numeric(10, 2): up to 99,999,999.99. The dearest bottle ever sold cost half a million.
PRICE_DIGITS, PRICE_DECIMALS = 10, 2


class Merchant(models.Model):
    id = models.CharField(primary_key=True, max_length=40, help_text="mch_ and a name or number of your choice.")
    name = models.CharField(max_length=120, unique=True)
    website = models.URLField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (models.CheckConstraint(name="pricing_merchant_id", condition=Q(id__regex=r"^mch_[a-z0-9_]+$")),)

    def __str__(self) -> str:
        return self.name


class FeedKey(models.Model):
    """A merchant's API key: `wck_<prefix>_<secret>`, shown once, of which only the SHA-256 is kept.

    A plain hash is enough: the secret is 256 random bits, so there is nothing to guess from.
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, related_name="feed_keys")
    prefix = models.CharField(max_length=12, unique=True)
    secret_sha256 = models.CharField(max_length=64)
    note = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"wck_{self.prefix}_…"


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
    retired_at = models.DateTimeField(null=True, blank=True, help_text="No longer listed; feeds are told so.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name", "vintage")
        constraints = (
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
        """As on the label and in mails: “Ch. Montrose 2016”, “Krug Grande Cuvée NV”."""
        return f"{self.name} {self.vintage or 'NV'}"


class Offer(models.Model):
    """What a merchant asks for a wine now. `occurred_at` is the merchant's clock; later wins, earlier is history."""

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="offers")
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT, related_name="offers", db_index=False)
    price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    occurred_at = models.DateTimeField(help_text="When the merchant says this price came to be.")
    event_id = models.TextField(help_text="The event that announced this price.")
    updated_at = models.DateTimeField(db_default=Now(), help_text="When we last changed this row.")
    seen_at = models.DateTimeField(help_text="The latest time the merchant confirmed this price.")

    class Meta:
        constraints = (
            models.UniqueConstraint(name="pricing_offer_identity", fields=["wine", "merchant"]),
            models.CheckConstraint(name="pricing_offer_price", condition=Q(price_usd__gt=0)),
        )

    def __str__(self) -> str:
        return f"{self.wine_id} at {self.merchant_id}: ${self.price_usd}"


class PriceHistory(models.Model):
    """Every price observed, in the order it was published. Append-only; rebuilt from the message log, never edited."""

    wine = models.ForeignKey(
        Wine, on_delete=models.DO_NOTHING, related_name="history", db_constraint=False, db_index=False
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


class HeldPrice(models.Model):
    """A price too far from the last one to act on unasked; a person releases or rejects it."""

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT)
    price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    last_price_usd = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS)
    occurred_at = models.DateTimeField()
    reason = models.CharField(max_length=200)
    held_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-held_at",)

    def __str__(self) -> str:
        return f"{self.wine_id} at {self.merchant_id}: ${self.price_usd} after ${self.last_price_usd}"


class FeedAnswer(models.Model):
    """What we answered to a merchant's request, so that its retry gets the same answer and no second effect."""

    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, db_index=False)
    key = models.CharField(max_length=200, help_text="The merchant's Idempotency-Key or delivery id.")
    body_sha256 = models.CharField(max_length=64)
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(name="pricing_feedanswer_identity", fields=["merchant", "key"]),)
        indexes = (models.Index(name="pricing_feedanswer_age", fields=["created_at"]),)

    def __str__(self) -> str:
        return f"{self.merchant_id} {self.key}"


class FeedRate(models.Model):
    """How many requests a merchant made in its current minute. An UNLOGGED table: counting costs no disk flush."""

    merchant = models.OneToOneField(Merchant, on_delete=models.CASCADE, primary_key=True, db_constraint=False)
    minute = models.DateTimeField()
    requests = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.merchant_id}: {self.requests}"
