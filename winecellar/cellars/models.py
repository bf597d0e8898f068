"""Cellars: what people have, what was drunk of it, what was imported, and what it was worth each night.

A bottle's wine may be none of our catalogue: the row says what its owner says, and links to a wine where one is known.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from pricing.matching import By
from pricing.models import PRICE_DECIMALS, PRICE_DIGITS, Wine
from winecellar.cellars.rules import Source

# A cellar of a hundred thousand bottles at the dearest price there is still fits.
VALUE_DIGITS = 16
# A price in other money, in dollars: so exact that it comes back to itself in a cellar of that money.
EXACT_DIGITS, EXACT_DECIMALS = 18, 8
RATE_DIGITS, RATE_DECIMALS = 20, 10  # as exact as central banks publish them, with room


class Cellar(models.Model):
    """Somebody's cellar, and how it is valued."""

    owner = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="cellar")
    currency = models.CharField(max_length=3, default="USD", help_text="What it is valued in; ISO 4217.")
    scales_by_size = models.BooleanField(
        "value other sizes by their volume",
        default=True,
        help_text="A magnum of a wine that is offered as 75 cl counts as two. Else it has no offer.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.CheckConstraint(name="cellars_cellar_currency", condition=Q(currency__regex="^[A-Z]{3}$")),
        )

    def __str__(self) -> str:
        return f"cellar of {self.owner_id}"


class Import(models.Model):
    """One file that somebody brought: looked at, then written as a whole or given up, and undone if it was wrong.

    The file itself is kept until that is decided.
    """

    class State(models.TextChoices):
        PREVIEW = "preview", "Not imported yet"
        APPLIED = "applied", "Imported"
        UNDONE = "undone", "Undone"

    cellar = models.ForeignKey(Cellar, on_delete=models.CASCADE, related_name="imports")
    state = models.CharField(max_length=10, choices=State, default=State.PREVIEW)
    file_name = models.CharField(max_length=200)
    content = models.BinaryField(null=True)
    decimal_sign = models.CharField(max_length=1, blank=True, help_text="As the person says; empty: found out.")
    links = models.JSONField(default=list, help_text="The wines that were found, so that what was shown is written.")
    report = models.JSONField(default=dict, help_text="What was read, in numbers, and the first rejected rows.")
    created_at = models.DateTimeField(db_default=Now())
    applied_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(
                name="cellars_import_state",
                condition=Q(state="preview", content__isnull=False, applied_at__isnull=True, undone_at__isnull=True)
                | Q(state="applied", content__isnull=True, applied_at__isnull=False, undone_at__isnull=True)
                | Q(state="undone", content__isnull=True, applied_at__isnull=False, undone_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.file_name}: {self.get_state_display()}"


class Bottle(models.Model):
    """So many equal bottles, bought together, lying in one place. When all are gone the row stays, with none left."""

    cellar = models.ForeignKey(Cellar, on_delete=models.CASCADE, related_name="bottles")
    wine = models.ForeignKey(
        Wine, on_delete=models.PROTECT, null=True, blank=True, related_name="bottles", db_index=False
    )
    linked_by = models.CharField(max_length=10, blank=True, choices=[(by.value, by.value) for by in By])
    name = models.CharField(max_length=200)
    producer = models.CharField(max_length=200, blank=True)
    vintage = models.PositiveSmallIntegerField(null=True, blank=True)
    non_vintage = models.BooleanField(default=False, help_text="It has no vintage on purpose (NV).")
    size_ml = models.PositiveIntegerField(default=750)
    colour = models.CharField(max_length=10, blank=True, choices=Wine.Colour)
    country = models.CharField(max_length=80, blank=True)
    region = models.CharField(max_length=120, blank=True)
    quantity = models.PositiveIntegerField()
    paid = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True, blank=True)
    paid_currency = models.CharField(max_length=3, blank=True)
    purchased_on = models.DateField(null=True, blank=True)
    store = models.CharField(max_length=120, blank=True)
    location = models.CharField(max_length=80, blank=True)
    bin = models.CharField(max_length=80, blank=True)
    drink_from = models.PositiveSmallIntegerField(null=True, blank=True)
    drink_until = models.PositiveSmallIntegerField(null=True, blank=True)
    note = models.CharField(max_length=1000, blank=True)
    own_value = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True, blank=True)
    own_currency = models.CharField(max_length=3, blank=True)
    keys = ArrayField(
        models.TextField(), default=list, help_text="What these bottles are called in the files they come in."
    )
    source_wine = models.CharField(max_length=40, blank=True, help_text="The wine's id in the file it came in.")
    imported_by = models.ForeignKey(Import, on_delete=models.SET_NULL, null=True, blank=True, related_name="bottles")
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(null=True, help_text="When its owner last changed something of it.")

    class Meta:
        ordering = ("name", "vintage", "size_ml", "id")
        # Whether a wine may be deleted; without the second index, for patterns, that Django gives to text keys.
        indexes = (models.Index(name="cellars_bottle_of_wine", fields=["wine"], condition=Q(wine__isnull=False)),)
        constraints = (
            models.CheckConstraint(
                name="cellars_bottle_linked",
                condition=(Q(wine__isnull=True) & Q(linked_by="")) | (Q(wine__isnull=False) & ~Q(linked_by="")),
            ),
            models.CheckConstraint(
                name="cellars_bottle_paid",
                condition=Q(paid__isnull=True, paid_currency="") | Q(paid__gt=0, paid_currency__regex="^[A-Z]{3}$"),
            ),
            models.CheckConstraint(
                name="cellars_bottle_own_value",
                condition=Q(own_value__isnull=True, own_currency="")
                | Q(own_value__gt=0, own_currency__regex="^[A-Z]{3}$"),
            ),
            models.CheckConstraint(name="cellars_bottle_size", condition=Q(size_ml__gte=50, size_ml__lte=30_000)),
            models.CheckConstraint(
                name="cellars_bottle_vintage", condition=Q(vintage__isnull=True) | Q(non_vintage=False)
            ),
            models.CheckConstraint(
                name="cellars_bottle_window",
                condition=Q(drink_from__isnull=True)
                | Q(drink_until__isnull=True)
                | Q(drink_until__gte=F("drink_from")),
            ),
        )

    def __str__(self) -> str:
        return self.full_name

    @property
    def vintage_words(self) -> str:
        """“2016”, “NV”, or nothing where it is not known."""
        return str(self.vintage) if self.vintage else "NV" if self.non_vintage else ""

    @property
    def full_name(self) -> str:
        return f"{self.name} {self.vintage_words}".strip()


class Consumption(models.Model):
    """Bottles that left the cellar, and how."""

    class How(models.TextChoices):
        DRUNK = "drunk", "Drunk"
        GIVEN = "given", "Given away"
        SOLD = "sold", "Sold"
        LOST = "lost", "Broken, corked or lost"

    bottle = models.ForeignKey(Bottle, on_delete=models.CASCADE, related_name="consumptions")
    quantity = models.PositiveIntegerField()
    how = models.CharField(max_length=10, choices=How, default=How.DRUNK)
    on = models.DateField()
    note = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-on", "-id")
        constraints = (models.CheckConstraint(name="cellars_consumption_quantity", condition=Q(quantity__gt=0)),)

    def __str__(self) -> str:
        return f"{self.quantity} of {self.bottle_id}: {self.how}"


# --- What it is worth: written by valuation.py alone -----------------------------------------------------------


class Night(models.Model):
    """What a night's valuations reckon with, frozen before the first of them, so that a run that is resumed agrees."""

    day = models.DateField(primary_key=True)
    slot = models.DateTimeField(help_text="Prices are as of this time.")
    rates = models.JSONField(help_text="Units of each currency for one US dollar, as text.")
    frozen_at = models.DateTimeField()
    valued_to = models.BigIntegerField(default=0, help_text="Cellars up to this id are valued: where a run goes on.")

    def __str__(self) -> str:
        return f"{self.day}"


class NightPrice(models.Model):
    """What a wine was offered at as of a night: the best standing offer, or the last one known and since when."""

    pk = models.CompositePrimaryKey("day", "wine_id")
    day = models.DateField()
    # Without a constraint, as the price history's: it would lock and check each wine each night.
    wine = models.ForeignKey(Wine, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    size_ml = models.PositiveIntegerField()
    offer_usd = models.DecimalField(max_digits=EXACT_DIGITS, decimal_places=EXACT_DECIMALS, null=True)
    last_usd = models.DecimalField(max_digits=EXACT_DIGITS, decimal_places=EXACT_DECIMALS, null=True)
    last_seen_on = models.DateField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="cellars_nightprice_either",
                condition=Q(offer_usd__isnull=False, last_usd__isnull=True, last_seen_on__isnull=True)
                | Q(offer_usd__isnull=True, last_usd__isnull=False, last_seen_on__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.wine_id} {self.day}"


class Valuation(models.Model):
    """What a cellar was worth on a day: one row for each cellar and day, never changed."""

    cellar = models.ForeignKey(Cellar, on_delete=models.CASCADE, related_name="valuations", db_index=False)
    day = models.DateField()
    currency = models.CharField(max_length=3)
    usd_rate = models.DecimalField(
        max_digits=RATE_DIGITS, decimal_places=RATE_DECIMALS, help_text="Units of the currency for one US dollar."
    )
    value = models.DecimalField(max_digits=VALUE_DIGITS, decimal_places=PRICE_DECIMALS)
    bottles = models.PositiveIntegerField()
    without_value = models.PositiveIntegerField(help_text="Bottles that no source has a value for: left out.")
    valued_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("day",)
        constraints = (
            models.UniqueConstraint(name="cellars_valuation_identity", fields=["cellar", "day"]),
            models.CheckConstraint(
                name="cellars_valuation_counts",
                condition=Q(without_value__lte=F("bottles")) & Q(value__gte=0) & Q(usd_rate__gt=0),
            ),
        )

    def __str__(self) -> str:
        return f"{self.cellar_id} {self.day}: {self.currency} {self.value}"


class ValuationLines(models.Model):
    """How a valuation came about, bottle by bottle, as equally long arrays; kept for VALUATION_DETAIL_RETENTION.

    A row per bottle and night would be fifty times the rows for what two pages read.
    """

    pk = models.CompositePrimaryKey("cellar_id", "day")
    cellar = models.ForeignKey(Cellar, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    day = models.DateField(db_index=True)
    bottle_ids = ArrayField(models.BigIntegerField())
    quantities = ArrayField(models.PositiveIntegerField())
    unit_values = ArrayField(models.DecimalField(max_digits=VALUE_DIGITS, decimal_places=PRICE_DECIMALS, null=True))
    sources = ArrayField(models.PositiveSmallIntegerField(choices=[(source.value, source.name) for source in Source]))
    seen_on = ArrayField(models.DateField(null=True))

    def __str__(self) -> str:
        return f"{self.cellar_id} {self.day}"
