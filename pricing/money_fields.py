"""Columns of money and the rules that the schema states of them, shared by the models."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from pricing.contract import CURRENCIES, TAX_EXCLUDED, TAX_INCLUDED, TAX_UNSAID, TAXES

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


def tax_field(words: str) -> models.CharField[str, str]:
    choices = [(TAX_INCLUDED, "with tax"), (TAX_EXCLUDED, "without tax")]
    return models.CharField(max_length=8, blank=True, db_default=TAX_UNSAID, choices=choices, help_text=words)


def tax_is_known(name: str) -> models.CheckConstraint:
    return models.CheckConstraint(name=name, condition=Q(tax__in=[*TAXES, TAX_UNSAID]))
