"""The tables of the feeds: how merchants get in, what they sent, what we answered, how often they came.

Part of pricing.models, which imports them; of no interest to whoever wants to know what a wine costs.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class FeedKey(models.Model):
    """A merchant's API key: `wck_<prefix>_<secret>`, shown once, of which only the SHA-256 is kept.

    A plain hash is enough: the secret is 256 random bits, so there is nothing to guess from.
    """

    merchant = models.ForeignKey("pricing.Merchant", on_delete=models.CASCADE, related_name="feed_keys")
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

    merchant = models.ForeignKey("pricing.Merchant", on_delete=models.CASCADE, related_name="signing_secrets")
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


class FeedAnswer(models.Model):
    """What we answered to a merchant's request, so that its retry gets the same answer and no second effect."""

    # Unchecked by the database: each request would lock its merchant's row once more, beside its twins (0038).
    merchant = models.ForeignKey("pricing.Merchant", on_delete=models.CASCADE, db_constraint=False, db_index=False)
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

    # Unchecked, as above.
    merchant = models.ForeignKey("pricing.Merchant", on_delete=models.CASCADE, db_constraint=False, db_index=False)
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

    merchant = models.ForeignKey("pricing.Merchant", on_delete=models.CASCADE, db_index=False)
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

    merchant = models.OneToOneField("pricing.Merchant", on_delete=models.CASCADE, primary_key=True, db_constraint=False)
    minute = models.DateTimeField()
    requests = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.merchant_id}: {self.requests}"
