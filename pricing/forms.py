"""What may be asked of the list of wines, by its address. A filter that cannot be read is named, and not applied."""

from typing import Any

from django import forms

from pricing.models import Wine
from pricing.projection_models import PRICE_DECIMALS, PRICE_DIGITS
from pricing.search import BY_MATCH, BY_NAME, BY_PRICE, Query

ORDERS = [(BY_MATCH, "Best match"), (BY_NAME, "Name"), (BY_PRICE, "Price")]


def _price(label: str) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        required=False,
        min_value=0,
        max_digits=PRICE_DIGITS,
        decimal_places=PRICE_DECIMALS,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )


class FilterForm(forms.Form):
    """The fields beside the words, which stand in the page's head and come as `q`."""

    vintage = forms.IntegerField(
        required=False, min_value=1700, max_value=2200, widget=forms.TextInput(attrs={"inputmode": "numeric"})
    )
    colour = forms.ChoiceField(required=False, choices=[("", "Any"), *Wine.Colour.choices])
    region = forms.CharField(required=False, max_length=120, label="Region or country")
    low = _price("Price from, in $")
    high = _price("Price to, in $")
    order = forms.ChoiceField(required=False, choices=ORDERS, label="Order by")
    stock = forms.BooleanField(required=False, label="Only what is offered now")

    def clean(self) -> dict[str, Any]:
        low, high = self.cleaned_data.get("low"), self.cleaned_data.get("high")
        if low is not None and high is not None and low > high:
            self.add_error("high", "This is below the lowest price.")
            del self.cleaned_data["low"]  # which of the two is wrong, nobody knows
        return self.cleaned_data

    @property
    def in_use(self) -> bool:
        return any(self.data.get(name) for name in self.fields)

    def query(self, text: str) -> Query:
        """What is asked for, as far as it can be read."""
        self.is_valid()
        asked = self.cleaned_data
        return Query(
            text=text,
            vintage=asked.get("vintage"),
            colour=asked.get("colour", ""),
            region=asked.get("region", ""),
            in_stock=asked.get("stock", False),
            low=asked.get("low"),
            high=asked.get("high"),
            order=asked.get("order") or BY_MATCH,
        )
