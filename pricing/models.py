"""Wines, merchants and what they ask: the source of truth for a price is the offer row, written at feed intake.

pricing_pricehistory is a projection of the message log, appended to by the price-history subscription.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from pricing import lookups
from pricing.catalogue_models import CatalogueFile, CataloguePiece, CatalogueRemark, CatalogueSettings
from pricing.contract import CURRENCIES
from pricing.matching import By
from pricing.projection_models import DailyPrice, SearchWord, WineDocument

__all__ = [
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
]

# numeric(10, 2): up to 99,999,999.99. The dearest bottle ever sold cost half a million.
PRICE_DIGITS, PRICE_DECIMALS = 10, 2
# In other money a bottle costs more: 26,000 dong are a dollar.
NATIVE_DIGITS = 14


def validate_currency(code: str) -> None:
    if code not in CURRENCIES:
        raise ValidationError("That is no ISO 4217 code of a currency in use, such as EUR.")


def native_is_whole(name: str) -> models.CheckConstraint:
    """A native price has its currency, and a currency its price; dollars are not native."""
    neither = Q(native_price__isnull=True, native_currency="")
    both = Q(native_price__gt=0, native_currency__regex=r"^[A-Z]{3}$") & ~Q(native_currency="USD")
    return models.CheckConstraint(name=name, condition=neither | both)


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


class SigningSecret(models.Model):
    """What a merchant signs its requests with. HMAC needs the secret as it is, so it is kept sealed: see sealing.py."""

    class Kind(models.TextChoices):
        STANDARD = "standard", "Standard Webhooks (whsec_…)"
        SHOPIFY = "shopify", "Shopify"
        WOOCOMMERCE = "woocommerce", "WooCommerce"

    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, related_name="signing_secrets")
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.STANDARD, help_text="Who signs with it, and how.")
    prefix = models.CharField(max_length=12, unique=True, help_text="Our name for it; tells nothing of the secret.")
    sealed = models.TextField()
    note = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"signing secret {self.prefix}"


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

    class Meta:
        ordering = ("name", "vintage")
        indexes = (
            GinIndex(name="pricing_wine_by_names", fields=["names"]),
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

    class Meta:
        constraints = (
            models.UniqueConstraint(name="pricing_offer_identity", fields=["wine", "merchant"]),
            models.CheckConstraint(name="pricing_offer_price", condition=Q(price_usd__gt=0)),
            native_is_whole("pricing_offer_native"),
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


class Availability(models.Model):
    """When a merchant stopped to offer a wine and when it offered it again: the gaps in the price history.

    Append-only and rebuilt from the message log, as the price history is, by the same subscription.
    """

    wine = models.ForeignKey(Wine, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
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
            models.CheckConstraint(
                name="pricing_heldprice_price",
                condition=Q(price_usd__isnull=False) | Q(native_price__isnull=False),
            ),
        )

    def __str__(self) -> str:
        said = f"{self.native_currency} {self.native_price}" if self.native_currency else f"${self.price_usd}"
        after = f" after ${self.last_price_usd}" if self.last_price_usd is not None else ""
        return f"{self.wine_id} at {self.merchant_id}: {said}{after}"


class Listing(models.Model):
    """One thing a merchant sells under its own id: which wine it is, or that this waits for a person.

    What the merchant last asked for it is kept, so that a price is not lost while its listing waits.
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="listings", db_index=False)
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
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT, null=True, blank=True, related_name="listings")
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


class RawBody(models.Model):
    """What a merchant sent, byte for byte as far as it is kept, so that a mended adapter can read it again.

    Events made from it name it in their attribute `raw_body`. Headers are kept without credentials and signatures.
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, db_index=False)
    source = models.CharField(max_length=20, help_text="The way in: price-changes, shopify, woocommerce.")
    headers = models.JSONField()
    body = models.BinaryField()
    size = models.PositiveIntegerField(help_text="Bytes as sent; more than are kept when it was long.")
    received_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "raw bodies"
        ordering = ("-id",)
        indexes = (models.Index(name="pricing_rawbody_age", fields=["received_at"]),)

    def __str__(self) -> str:
        return f"{self.source} of {self.merchant_id}, {self.size} bytes"

    @property
    def is_whole(self) -> bool:
        return len(self.body) == self.size


class IgnoredWebhook(models.Model):
    """How many webhooks a merchant's shop sends that are about no product, and the last one's topic."""

    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, db_index=False)
    system = models.CharField(max_length=12)
    count = models.PositiveIntegerField()
    last_topic = models.CharField(max_length=100, blank=True)
    last_at = models.DateTimeField()

    class Meta:
        ordering = ("-last_at",)
        constraints = (models.UniqueConstraint(name="pricing_ignoredwebhook_identity", fields=["merchant", "system"]),)

    def __str__(self) -> str:
        return f"{self.merchant_id}, {self.system}: {self.count}"


class FeedRate(models.Model):
    """How many requests a merchant made in its current minute. An UNLOGGED table: counting costs no disk flush."""

    merchant = models.OneToOneField(Merchant, on_delete=models.CASCADE, primary_key=True, db_constraint=False)
    minute = models.DateTimeField()
    requests = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.merchant_id}: {self.requests}"
