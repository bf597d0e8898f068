"""What somebody confirms when they buy: how many, and the price that they were shown."""

from __future__ import annotations

import secrets
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings

from pricing.money_fields import NATIVE_DIGITS, PRICE_DECIMALS
from winecellar.purchases.models import StockItem
from winecellar.templatetags.cellar import in_money


class BuyForm(forms.Form):
    """The hidden fields are what the buyer saw; the service compares them with what is."""

    quantity = forms.TypedChoiceField(label="Bottles", coerce=int)
    unit_price = forms.DecimalField(
        max_digits=NATIVE_DIGITS, decimal_places=PRICE_DECIMALS, min_value=Decimal("0.01"), widget=forms.HiddenInput
    )
    currency = forms.RegexField(r"^[A-Z]{3}$", widget=forms.HiddenInput)
    token = forms.RegexField(r"^[0-9a-f]{32}$", widget=forms.HiddenInput)

    def __init__(self, *args: Any, item: StockItem, **options: Any) -> None:
        super().__init__(*args, **options)
        most = settings.PURCHASE_MOST_BOTTLES if self.is_bound else min(item.free, settings.PURCHASE_MOST_BOTTLES)
        field = self.fields["quantity"]
        assert isinstance(field, forms.TypedChoiceField)
        field.choices = [
            (n, f"{n} bottle{'s' if n > 1 else ''}: {in_money(n * item.price, item.currency)}")
            for n in range(1, most + 1)
        ]


def fresh_form(item: StockItem, *, quantity: int = 1) -> BuyForm:
    """The form as it is shown: with the price now, and a token of its own."""
    return BuyForm(
        item=item,
        initial={
            "quantity": quantity,
            "unit_price": item.price,
            "currency": item.currency,
            "token": secrets.token_hex(16),
        },
    )
