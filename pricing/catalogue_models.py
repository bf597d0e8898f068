"""The tables of catalogue files: how a merchant's files are read, the files themselves, and what was said of them.

Part of pricing.models, which imports them; in a module of their own because they are read by few.
"""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from pricing.contract import CURRENCIES


class CatalogueSettings(models.Model):
    """How one merchant's files are to be read, and what becomes of listings that a file no longer has."""

    class Absent(models.TextChoices):
        KEEP = "keep", "Keep: as if nothing had happened"
        REPORT = "report", "Report: name them in the file's report"
        WITHDRAW = "withdraw", "Withdraw: mark them unavailable, and name them"

    class Unit(models.TextChoices):
        CURRENCY = "currency", "Dollars, pounds, euros"
        CENTS = "cents", "Cents, pence"

    merchant = models.OneToOneField(
        "pricing.Merchant", on_delete=models.CASCADE, primary_key=True, related_name="catalogue_settings"
    )
    format = models.CharField(max_length=20, blank=True, help_text="Empty: found from the file's name and content.")
    encoding = models.CharField(max_length=20, blank=True, help_text="Empty: found from the file.")
    delimiter = models.CharField(max_length=1, blank=True, help_text="Between columns. Empty: found from the file.")
    decimal_sign = models.CharField(
        max_length=1,
        blank=True,
        choices=[(".", "point: 1,600.00"), (",", "comma: 1.600,00")],
        help_text="Empty: found from the whole column; a file in which it stays unclear is refused.",
    )
    unit = models.CharField(max_length=8, choices=Unit, default=Unit.CURRENCY)
    currency = models.CharField(
        max_length=3, blank=True, help_text="ISO 4217 code of prices that come without one. Empty: the merchant's."
    )
    tax = models.CharField(
        max_length=8,
        blank=True,
        choices=[("included", "with tax"), ("excluded", "without tax")],
        help_text="What the prices are, for the record.",
    )
    columns = models.JSONField(
        default=dict, blank=True, help_text='Which column is what, such as {"title": "Wine", "price": "Per bottle"}.'
    )
    absent = models.CharField(max_length=8, choices=Absent, default=Absent.REPORT)
    smallest_share = models.PositiveSmallIntegerField(
        default=80,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Per cent of the last file's rows. With fewer, nothing counts as absent.",
    )
    open_end = models.BooleanField(
        default=False, help_text="Its files end without a line end, so that a missing one says nothing."
    )
    take_broken = models.BooleanField(
        default=False, help_text="Of a file that breaks off, take the rows before the fault. Otherwise none."
    )
    # What the last file that was taken whole left behind.
    rows = models.PositiveIntegerField(null=True, editable=False)
    as_of = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name_plural = "catalogue settings"
        constraints = (
            models.CheckConstraint(
                name="pricing_catalogue_share", condition=Q(smallest_share__gte=1, smallest_share__lte=100)
            ),
            models.CheckConstraint(
                name="pricing_catalogue_currency", condition=Q(currency="") | Q(currency__in=sorted(CURRENCIES))
            ),
        )

    def __str__(self) -> str:
        return f"files of {self.merchant_id}"


class CatalogueFile(models.Model):
    """One file of a merchant: what it is, how far it has been taken, and what came of each of its rows.

    Every row that could be read is counted once: changed, unchanged, stale, held, unmatched, kept or rejected.
    `lease_token` says who works on it; all that this worker writes is written only while the token is still its own.
    """

    class Status(models.TextChoices):
        RECEIVING = "receiving", "Being received"
        UPLOADED = "uploaded", "Waiting"
        READING = "reading", "Being read"
        APPLYING = "applying", "Being taken"
        DONE = "done", "Taken"
        REFUSED = "refused", "Refused"

    RUNNING = (Status.READING, Status.APPLYING)
    FINISHED = (Status.DONE, Status.REFUSED)

    merchant = models.ForeignKey("pricing.Merchant", on_delete=models.PROTECT, related_name="catalogue_files")
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64, blank=True)
    bytes = models.BigIntegerField(default=0)
    as_of = models.DateTimeField(help_text="The time of which the merchant's prices in it are.")
    received_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    status = models.CharField(max_length=9, choices=Status, default=Status.RECEIVING)
    error = models.TextField(blank=True, help_text="Why it was refused, or not taken as a whole.")
    shrunken = models.BooleanField(default=False, help_text="It had too few rows to believe that the others are gone.")
    broken = models.BooleanField(default=False, help_text="It broke off, and what came before was taken.")

    queued = models.BooleanField(default=False, help_text="A worker is to take it, after those that came before.")
    late = models.BooleanField(default=False, help_text="A newer one had been taken when it came.")

    settings = models.JSONField(null=True, help_text="The merchant's settings when it was read, for this reading.")
    style = models.JSONField(null=True, help_text="How its numbers are written.")
    reading = models.BigIntegerField(null=True, help_text="A fingerprint of how its rows are understood.")
    stage = models.CharField(max_length=60, blank=True, help_text="The table that its rows were read into.")
    seen = models.PositiveIntegerField(default=0, help_text="Rows that were met so far.")
    rows = models.PositiveIntegerField(default=0, help_text="Rows that could be read, once all were met.")
    unread = models.PositiveIntegerField(default=0, help_text="Rows that could not.")
    nameless = models.PositiveIntegerField(default=0, help_text="Of those: without an id that could be read.")
    bare = models.PositiveIntegerField(default=0, help_text="Of those: with a price in no currency that they name.")
    cursor = models.PositiveIntegerField(default=0, help_text="The last row that was taken.")
    changed = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    stale = models.PositiveIntegerField(default=0)
    held = models.PositiveIntegerField(default=0)
    unmatched = models.PositiveIntegerField(default=0)
    kept = models.PositiveIntegerField(default=0, help_text="No price, sold out, set aside, a retired wine.")
    rejected = models.PositiveIntegerField(default=0, help_text="Read, but not understood.")
    absent = models.PositiveIntegerField(null=True, help_text="Listings of earlier files that this one does not have.")
    absent_done = models.PositiveIntegerField(default=0)
    withdrawn = models.PositiveIntegerField(default=0)

    lease_token = models.CharField(max_length=32, blank=True)
    leased_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(name="pricing_catalogue_age", fields=["received_at"]),)
        constraints = (
            models.UniqueConstraint(
                name="pricing_catalogue_one_at_a_time",
                fields=["merchant"],
                condition=Q(status__in=["reading", "applying"]),
            ),
            models.CheckConstraint(
                name="pricing_catalogue_finished",
                condition=Q(status__in=["done", "refused"], finished_at__isnull=False)
                | (~Q(status__in=["done", "refused"]) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="pricing_catalogue_refused_says_why", condition=~Q(status="refused") | ~Q(error="")
            ),
        )

    def __str__(self) -> str:
        return f"file {self.pk} of {self.merchant_id}: {self.name}"


class CataloguePiece(models.Model):
    """A megabyte of a file's bytes, so that any host can read it. Removed after CATALOGUE_RETENTION."""

    file = models.ForeignKey(CatalogueFile, on_delete=models.CASCADE, related_name="pieces", db_index=False)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = (models.UniqueConstraint(name="pricing_cataloguepiece_identity", fields=["file", "number"]),)

    def __str__(self) -> str:
        return f"file {self.file_id}, piece {self.number}"


class CatalogueRemark(models.Model):
    """One thing to tell of a file: a row that was not taken, or a listing that it no longer has. Bounded in number."""

    class Kind(models.TextChoices):
        UNREAD = "unread", "could not be read"
        REJECTED = "rejected", "could not be understood"
        ABSENT = "absent", "no longer in the file"

    file = models.ForeignKey(CatalogueFile, on_delete=models.CASCADE, related_name="remarks", db_index=False)
    kind = models.CharField(max_length=8, choices=Kind)
    line = models.PositiveIntegerField(null=True)
    field = models.CharField(max_length=60, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    source_id = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("file", "kind", "id")
        indexes = (models.Index(name="pricing_catalogueremark_of", fields=["file", "kind", "id"]),)

    def __str__(self) -> str:
        return f"line {self.line}: {self.field}: {self.reason}" if self.line else self.source_id
