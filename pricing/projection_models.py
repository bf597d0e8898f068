"""What pricing keeps for its readers and could make again: the documents that are searched, and prices by the day.

Written by search.py and analytics.py alone, for their subscriptions and for `manage.py rebuild`.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q

PRICE_DIGITS, PRICE_DECIMALS = 10, 2  # as those of an offer


def price_field() -> models.DecimalField:  # type: ignore[type-arg]
    return models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_DECIMALS, null=True)


class WineDocument(models.Model):
    """What of a wine that is not retired is searched and sorted by. Offers move no index, so that updates stay HOT."""

    wine = models.OneToOneField("pricing.Wine", on_delete=models.CASCADE, primary_key=True, related_name="document")
    words = SearchVectorField(help_text="Folded: A its name and vintage, B its producer, C region and country.")
    place = models.TextField(db_collation="C", unique=True, help_text="Folded name, vintage, size, id: the order.")
    vintage = models.PositiveSmallIntegerField(null=True)
    colour = models.CharField(max_length=10)
    offers = models.PositiveIntegerField(default=0)
    best_usd = price_field()

    class Meta:
        indexes = (
            GinIndex(name="pricing_document_words", fields=["words"], fastupdate=False),
            models.Index(name="pricing_document_vintage", fields=["vintage", "place"]),
        )
        constraints = (
            models.CheckConstraint(
                name="pricing_document_offers",
                condition=Q(offers=0, best_usd__isnull=True) | Q(offers__gt=0, best_usd__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.wine_id


class SearchWord(models.Model):
    """A word that some wine had once, and parts of it that most misspellings share: what a mistyped one may mean."""

    word = models.CharField(primary_key=True, max_length=200)
    parts = ArrayField(models.TextField())

    class Meta:
        indexes = (GinIndex(name="pricing_searchword_parts", fields=["parts"], fastupdate=False),)

    def __str__(self) -> str:
        return self.word


class DailyPrice(models.Model):
    """A wine's prices on a UTC day on which something changed. The fields are those of daily.Day."""

    pk = models.CompositePrimaryKey("wine_id", "day")
    wine = models.ForeignKey(
        "pricing.Wine", on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    day = models.DateField()
    low = price_field()
    high = price_field()
    close = price_field()
    average = price_field()
    offers = models.PositiveIntegerField()
    asked = models.JSONField(help_text="By merchant: since when, and the price, null where it does not offer.")

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="pricing_dailyprice_offers",
                condition=Q(offers=0, close__isnull=True, average__isnull=True)
                | Q(
                    offers__gt=0,
                    low__lte=models.F("close"),
                    close__lte=models.F("high"),
                    average__gte=models.F("close"),
                ),
            ),
        )

    def __str__(self) -> str:
        return f"{self.wine_id} {self.day}: {self.low} to {self.high}"
