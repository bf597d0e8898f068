"""What somebody types to be told: strict about what is a price, a part or a date; says what to do about what is not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django import forms

from alerts.models import Alert
from alerts.services import Wish
from pricing.contract import CURRENCIES, LARGEST_PRICE, PRICE_CURRENCY
from pricing.models import Merchant
from pricing.selectors import CurrentOffer

# ASCII digits and at most two after the point. Python's Decimal also takes “१२”, “1_0”, “1e20” and “NaN”.
PRICE_AS_TYPED = re.compile(r"[0-9]+(\.[0-9]{1,2})?")
PERCENT_AS_TYPED = re.compile(r"[0-9]{1,2}(\.[0-9])?")
LONGEST_AS_TYPED = 40
LONGEST_WINDOW = 3_650  # days; a longer one is ever


class TargetField(forms.CharField):
    """A price above zero; a currency's sign before it does no harm. Cleans to a Decimal of two places, or None."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "size": 12})
        super().__init__(label="Target", widget=widget, max_length=LONGEST_AS_TYPED, **options)

    def clean(self, value: Any) -> Any:
        text = str(super().clean(value)).lstrip("$€£").strip()
        if not text:
            return None
        if "," in text:
            raise forms.ValidationError("Use a point for cents and nothing between thousands, such as 1250.50.")
        if text.startswith("-"):
            raise forms.ValidationError("Enter a price above zero.")
        if not PRICE_AS_TYPED.fullmatch(text):
            raise forms.ValidationError("Enter a price in digits with at most two after the point, such as 149.50.")
        price = Decimal(text)
        if not price:
            raise forms.ValidationError("Enter a price above zero.")
        if price > LARGEST_PRICE:
            raise forms.ValidationError(f"Enter a price of at most ${LARGEST_PRICE:,.2f}.")
        return price.quantize(Decimal("0.01"))


class PercentField(forms.CharField):
    def clean(self, value: Any) -> Any:
        text = str(super().clean(value)).removesuffix("%").strip()
        if not text:
            return None
        if not PERCENT_AS_TYPED.fullmatch(text) or not Decimal(text):
            raise forms.ValidationError("Enter a part above 0 and below 100 with at most one decimal, such as 12.5.")
        return Decimal(text)


class DaysField(forms.CharField):
    def clean(self, value: Any) -> Any:
        text = str(super().clean(value)).strip()
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= LONGEST_WINDOW):
            raise forms.ValidationError(f"Enter a number of days from 1 to {LONGEST_WINDOW:,}, or nothing for ever.")
        return int(text)


def _numeric(size: int) -> forms.TextInput:
    return forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "size": size})


class WatchForm(forms.Form):
    """Watch a wine, or change how: what to wait for, from one of its merchants or any. `alert`: which is changed."""

    kind = forms.ChoiceField(label="Tell me when it is", required=False, choices=Alert.Kind.choices)
    target = TargetField(required=False)
    currency = forms.ChoiceField(label="Currency", required=False)
    percent = PercentField(label="Per cent below today’s price", required=False, max_length=10, widget=_numeric(5))
    low_days = DaysField(label="New low of how many days", required=False, max_length=10, widget=_numeric(5))
    merchant = forms.ChoiceField(label="Sold by", required=False)
    name = forms.CharField(label="Your name for it", required=False, max_length=80)
    expires = forms.DateField(
        label="Watch until",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
        error_messages={"invalid": "Enter a date as year-month-day, such as 2027-05-17, or nothing."},
    )

    def __init__(
        self,
        *args: Any,
        offers: Iterable[CurrentOffer],
        currencies: Iterable[str] = (),
        alert: Alert | None = None,
        today: date,
        **options: Any,
    ) -> None:
        known = _as_form(alert) if alert else {}
        options["initial"] = {**known, **options.get("initial", {})}
        super().__init__(*args, **options)
        self.alert, self.today = alert, today
        offers = list(offers)
        merchants = {offer.merchant_id: offer.merchant_name for offer in offers}
        if alert and alert.merchant:
            merchants.setdefault(alert.merchant.pk, alert.merchant.name)
        named = sorted((name, key) for key, name in merchants.items())
        self._choose("merchant", [("", "Any merchant"), *((key, name) for name, key in named)])
        codes = {PRICE_CURRENCY, *currencies, *(offer.native_currency for offer in offers)} & CURRENCIES
        # A currency is the alert's for ever: its targets, prices and log are in it.
        codes = {alert.currency} if alert else codes
        self._choose("currency", [(code, code) for code in sorted(codes, key=lambda code: (code != "USD", code))])
        self.fields["low_days"].help_text = "Empty: the lowest ever."

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        data["kind"] = Alert.Kind(data.get("kind") or Alert.Kind.THRESHOLD)
        data["currency"] = data.get("currency") or (self.alert.currency if self.alert else PRICE_CURRENCY)
        if data["kind"] == Alert.Kind.THRESHOLD and data.get("target") is None and "target" not in self.errors:
            self.add_error("target", "Enter the price you wait for, such as 150 or 149.50.")
        if data["kind"] == Alert.Kind.PERCENT and data.get("percent") is None and "percent" not in self.errors:
            self.add_error("percent", "Enter by how many per cent it has to fall, such as 10.")
        if data.get("expires") and data["expires"] < self.today:
            self.add_error("expires", "Enter a day that is still to come, or nothing.")
        return data

    def wish(self) -> Wish:
        """What the valid form asks for. It watches until the end of the day that was named, in UTC."""
        data = self.cleaned_data
        day, merchant_id = data["expires"], data["merchant"]
        return Wish(
            kind=data["kind"],
            target=data["target"],
            percent=data["percent"],
            low_days=data["low_days"],
            currency=data["currency"],
            merchant=Merchant(pk=merchant_id) if merchant_id else None,
            name=data["name"],
            expires_at=datetime.combine(day + timedelta(days=1), time(), UTC) if day else None,
        )

    def as_query(self) -> dict[str, str]:
        """What was typed, for an address that shows the form so again."""
        return {name: text for name in self.fields if (text := str(self.data.get(name, "")).strip())}

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices


def _as_form(alert: Alert) -> dict[str, Any]:
    """An alert as its form would have been filled in; also the address of its duplicate."""
    return {
        "kind": alert.kind,
        "target": alert.target if alert.kind == Alert.Kind.THRESHOLD else None,
        "currency": alert.currency,
        "percent": alert.percent,
        "low_days": alert.low_days,
        "merchant": alert.merchant_id,
        "name": alert.name,
        "expires": (alert.expires_at - timedelta(days=1)).astimezone(UTC).date() if alert.expires_at else None,
    }


def as_query(alert: Alert) -> dict[str, str]:
    """The same as text, for the form of a second alert like it."""
    return {name: str(value) for name, value in _as_form(alert).items() if value not in (None, "")}
