"""The target, as somebody types it: strict about what is a price, and says what to do about what is not."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django import forms

from pricing.contract import LARGEST_PRICE
from pricing.selectors import CurrentOffer

# ASCII digits and at most two after the point. Python's Decimal also takes “१२”, “1_0”, “1e20” and “NaN”.
PRICE_AS_TYPED = re.compile(r"[0-9]+(\.[0-9]{1,2})?")
LONGEST_AS_TYPED = 40


class TargetField(forms.CharField):
    """A price in US dollars, above zero; a dollar sign before it does no harm. Cleans to a Decimal of two places."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "size": 12})
        super().__init__(label="Target in US dollars", widget=widget, max_length=LONGEST_AS_TYPED, **options)
        self.error_messages["required"] = "Enter the price you wait for, such as 150 or 149.50."

    def clean(self, value: Any) -> Any:
        text = str(super().clean(value)).removeprefix("$").strip()
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


class TargetForm(forms.Form):
    """Another target for an alert there is."""

    target = TargetField()


class WatchForm(forms.Form):
    """Watch a wine: a target, and one of its merchants or any."""

    target = TargetField()
    merchant = forms.ChoiceField(label="Sold by", required=False)

    def __init__(self, *args: Any, offers: Iterable[CurrentOffer], **options: Any) -> None:
        super().__init__(*args, **options)
        merchants = sorted((offer.merchant_name, offer.merchant_id) for offer in offers)
        choices = [("", "Any merchant"), *((key, name) for name, key in merchants)]
        self.fields["merchant"] = forms.ChoiceField(label="Sold by", required=False, choices=choices)


class ChannelForm(forms.Form):
    """Where else to be told. What it may be is services' business; here it is only one line of text."""

    address = forms.CharField(
        label="Add an address",
        max_length=600,
        strip=True,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )

    def __init__(self, *args: Any, services: Iterable[str] = (), **options: Any) -> None:
        """`services`: the names of the chat and push services that this site reaches."""
        super().__init__(*args, **options)
        names = ", ".join(services)
        others = f" For {names}, it is written as Apprise writes it, such as tgram://token/chat." if names else ""
        self.fields["address"].help_text = f"For a webhook, its https address.{others}"
