"""Purchases: what merchants have in stock, who buys it with which card, and how each purchase went, step by step.

What is written about a purchase's course (entries, money) is only ever added to: the schema refuses the rest. Changed
by books.py and services.py alone.
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from pricing.models import PRICE_DECIMALS, Merchant, Wine, validate_currency
from pricing.money_fields import NATIVE_DIGITS
from winecellar.purchases.money import AmountError, units
from winecellar.purchases.rules import ENDED, Event, State
from winecellar.purchases.words import STATES

AMOUNT_DIGITS = NATIVE_DIGITS + 2  # of a dozen bottles and more


def new_reference() -> str:
    """Never used again, also by a database that was restored: the provider remembers what it was asked."""
    return f"pur_{secrets.token_hex(10)}"


def _money(**options: object) -> models.DecimalField:  # type: ignore[type-arg]
    return models.DecimalField(max_digits=AMOUNT_DIGITS, decimal_places=PRICE_DECIMALS, **options)  # type: ignore[arg-type]


class Seller(models.Model):
    """Where a merchant's orders go."""

    merchant = models.OneToOneField(Merchant, on_delete=models.CASCADE, primary_key=True, related_name="seller")
    orders_to = models.EmailField(help_text="Gets a mail for each purchase, once it is paid.")

    def __str__(self) -> str:
        return f"{self.merchant_id}: {self.orders_to}"


class StockItem(models.Model):
    """Bottles of a wine that a merchant sells here. A purchase under way reserves some of those on hand."""

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="stock", db_index=False)
    wine = models.ForeignKey(Wine, on_delete=models.PROTECT, related_name="stock")
    on_hand = models.PositiveIntegerField(help_text="Bottles not sold yet, those reserved among them.")
    reserved = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    price = models.DecimalField(
        max_digits=NATIVE_DIGITS,
        decimal_places=PRICE_DECIMALS,
        help_text="For one bottle, with all that the buyer pays.",
    )
    currency = models.CharField(max_length=3, default="USD", validators=[validate_currency])
    changed_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("wine", "price", "id")
        constraints = (
            models.UniqueConstraint(name="purchases_stockitem_identity", fields=["merchant", "wine"]),
            models.CheckConstraint(name="purchases_stockitem_reserved", condition=Q(reserved__lte=F("on_hand"))),
            models.CheckConstraint(
                name="purchases_stockitem_price", condition=Q(price__gt=0, currency__regex="^[A-Z]{3}$")
            ),
        )

    def __str__(self) -> str:
        return f"{self.wine_id} at {self.merchant_id}"

    @property
    def free(self) -> int:
        return self.on_hand - self.reserved

    def clean(self) -> None:
        if self.price is not None and self.currency:
            try:
                units(self.price, self.currency)
            except AmountError as error:
                raise ValidationError({"price": str(error)}) from error


class Card(models.Model):
    """A person's card, by the payment provider's names for it. Its number was never here."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="card"
    )
    customer_id = models.CharField(max_length=100)
    method_id = models.CharField(max_length=100, blank=True, help_text="Empty: none was given yet, or it was removed.")
    label = models.CharField(max_length=100, blank=True)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.label or "no card"


class Purchase(models.Model):
    """One purchase, from the bottles' reservation to its end. Stays when its buyer leaves, without saying who it was:
    the books need it."""

    # What accounts/belongings.py reads: theirs to be shown, and kept when they leave.
    KEPT_WHEN_ERASED = "the merchant's and our books; without the person"

    reference = models.CharField(max_length=24, unique=True, default=new_reference, editable=False)
    buyer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="purchases", db_index=False
    )
    token = models.CharField(max_length=32, help_text="The form's: the same form sent twice is one purchase.")
    item = models.ForeignKey(StockItem, on_delete=models.PROTECT, related_name="purchases", db_index=False)
    merchant_name = models.CharField(max_length=120)
    wine_name = models.CharField(max_length=220)
    quantity = models.PositiveSmallIntegerField()
    unit_price = models.DecimalField(max_digits=NATIVE_DIGITS, decimal_places=PRICE_DECIMALS)
    amount = _money()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=20, choices=[(state.value, STATES[state]) for state in State])
    reserved_until = models.DateTimeField()
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField(help_text="When it came into its state.")
    reason = models.CharField(max_length=200, blank=True, help_text="Why it came to nothing, for the buyer.")
    customer_id = models.CharField(max_length=100)
    method_id = models.CharField(max_length=100)
    card_label = models.CharField(max_length=100)
    intent_id = models.CharField(max_length=100, blank=True)
    attempts = models.PositiveIntegerField(default=0, db_default=0, help_text="How often the provider was asked.")
    asked_at = models.DateTimeField(null=True, help_text="When it was last asked.")

    class Meta:
        ordering = ("-id",)
        permissions = (
            ("resume_purchase", "Can have a purchase go on"),
            ("compensate_purchase", "Can have a purchase undone"),
            ("resolve_purchase", "Can mark a purchase as resolved"),
        )
        constraints = (
            models.UniqueConstraint(name="purchases_purchase_token", fields=["buyer", "token"]),
            models.CheckConstraint(name="purchases_purchase_state", condition=Q(state__in=[s.value for s in State])),
            models.CheckConstraint(
                name="purchases_purchase_amount",
                condition=Q(quantity__gt=0, amount__gt=0, amount=F("unit_price") * F("quantity")),
            ),
        )
        indexes = (
            models.Index(name="purchases_of_buyer", fields=["buyer", "-id"], condition=Q(buyer__isnull=False)),
            # What is under way, for the job of each minute and the alarms: some rows of many.
            models.Index(
                name="purchases_under_way",
                fields=["changed_at"],
                condition=~Q(state__in=[state.value for state in sorted(ENDED)]),
            ),
            models.Index(
                name="purchases_by_intent", fields=["intent_id"], condition=~Q(intent_id="")
            ),  # a report names it
        )

    def __str__(self) -> str:
        return f"{self.reference}: {self.quantity} of {self.wine_name}"


class Entry(models.Model):
    """One thing that happened to a purchase. Append-only: the database refuses to change or remove a row."""

    class Kind(models.TextChoices):
        BEGUN = "begun", "begun"
        ASKED = "asked", "the provider was asked"
        ANSWERED = "answered", "the provider answered"
        CHANGED = "changed", "state changed"
        LOST = "lost", "no answer"

    purchase = models.ForeignKey(Purchase, on_delete=models.PROTECT, related_name="entries", db_index=False)
    kind = models.CharField(max_length=10, choices=Kind)
    event = models.CharField(max_length=20, blank=True, choices=[(event.value, event.value) for event in Event])
    came_from = models.CharField(max_length=20, blank=True)
    state = models.CharField(max_length=20, help_text="Its state then.")
    says = models.CharField(max_length=500, blank=True)
    by = models.CharField(max_length=40, blank=True, help_text="A person's number, where one decided.")
    at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "entries"
        indexes = (models.Index(name="purchases_entries_of", fields=["purchase", "id"]),)

    def __str__(self) -> str:
        return f"{self.purchase_id} {self.kind}: {self.state}"


class Money(models.Model):
    """Money that moved, as the provider says. Append-only. Charges minus refunds is what was paid."""

    class Kind(models.TextChoices):
        CHARGE = "charge", "Charge"
        REFUND = "refund", "Refund"
        RETURNED = "returned", "Refund that came back"

    purchase = models.ForeignKey(Purchase, on_delete=models.PROTECT, related_name="money", db_index=False)
    kind = models.CharField(max_length=10, choices=Kind)
    amount = _money()
    currency = models.CharField(max_length=3)
    provider_id = models.CharField(max_length=100)
    fee = _money(null=True, blank=True, help_text="What the provider keeps, also when the money goes back.")
    at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "money"
        constraints = (
            models.UniqueConstraint(name="purchases_money_identity", fields=["purchase", "kind", "provider_id"]),
            models.CheckConstraint(name="purchases_money_amount", condition=Q(amount__gt=0)),
        )

    def __str__(self) -> str:
        return f"{self.purchase_id} {self.kind} {self.currency} {self.amount}"


class PurchaseMail(models.Model):
    """A mail that a purchase's end asks for. Sent once for each kind."""

    class Kind(models.TextChoices):
        BOUGHT = "bought", "to the buyer: bought"
        SOLD = "sold", "to the merchant: sold"
        REFUNDED = "refunded", "to the buyer: refunded"

    class State(models.TextChoices):
        QUEUED = "queued", "on its way"
        SENT = "sent", "sent"
        REFUSED = "refused", "the address takes no mail"
        UNWANTED = "unwanted", "not sent: nobody to send it to"

    purchase = models.ForeignKey(Purchase, on_delete=models.PROTECT, related_name="mails", db_index=False)
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(name="purchases_mail_identity", fields=["purchase", "kind"]),
            models.CheckConstraint(
                name="purchases_mail_settled",
                condition=Q(state="queued", settled_at__isnull=True)
                | (~Q(state="queued") & Q(settled_at__isnull=False)),
            ),
        )

    def __str__(self) -> str:
        return f"{self.purchase_id} {self.kind}: {self.state}"


class ProviderReport(models.Model):
    """A report of the provider's that was taken: the same one again changes nothing. Kept for as long as it may."""

    event_id = models.CharField(primary_key=True, max_length=100)
    kind = models.CharField(max_length=100)
    received_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.event_id} {self.kind}"
