"""The cellar's forms: strict about numbers and years, and says what to do about what is none."""

import re
from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings

from pricing.contract import CURRENCIES, LARGEST_PRICE
from pricing.sizes import BOTTLE_ML, size_words
from pricing.titles import EARLIEST_VINTAGE, LATEST_VINTAGE, UnclearVintageError, read_vintage
from winecellar.cellars.files import lots
from winecellar.cellars.models import Bottle, Cellar, Consumption

AMOUNT = re.compile(r"[0-9]{1,10}(\.[0-9]{1,2})?")
COUNT = re.compile(r"[0-9]{1,7}")
SIZES = (187, 200, 375, 500, 750, 1000, 1500, 3000, 4500, 5000, 6000, 9000, 12_000, 15_000)
DESCRIBED = ("name", "producer", "colour", "country", "region")
TEXTS = ("store", "location", "bin", "note")


class AmountField(forms.CharField):
    """Money: digits, at most two after the point, above zero. Cleans to a Decimal, or None for nothing."""

    def __init__(self, label: str) -> None:
        widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "size": 12})
        super().__init__(label=label, required=False, max_length=40, widget=widget)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        if not AMOUNT.fullmatch(text):
            raise forms.ValidationError("Enter digits with at most two after the point, such as 149.50.")
        amount = Decimal(text).quantize(lots.CENT)
        if not 0 < amount <= LARGEST_PRICE:
            raise forms.ValidationError(f"Enter an amount above 0 and up to {LARGEST_PRICE:,}, or nothing.")
        return amount


class CountField(forms.CharField):
    """A number of bottles, from `least` up."""

    def __init__(self, label: str, *, least: int = 1) -> None:
        widget = forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "size": 6})
        super().__init__(label=label, max_length=20, widget=widget)
        self.least = least
        self.error_messages["required"] = "Enter how many bottles."

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        most = settings.CELLAR_MAX_PER_ROW
        if not COUNT.fullmatch(text) or not self.least <= int(text) <= most:
            raise forms.ValidationError(f"Enter a whole number from {self.least} to {most:,}.")
        return int(text)


class YearField(forms.CharField):
    """A year, or None for nothing."""

    def __init__(self, label: str) -> None:
        widget = forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "size": 6})
        super().__init__(label=label, required=False, max_length=20, widget=widget)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and EARLIEST_VINTAGE <= int(text) <= LATEST_VINTAGE):
            raise forms.ValidationError(f"Enter a year from {EARLIEST_VINTAGE} to {LATEST_VINTAGE}, or nothing.")
        return int(text)


class VintageField(forms.CharField):
    """A year, NV, or nothing: cleans to (year, whether it is NV)."""

    def __init__(self) -> None:
        super().__init__(label="Vintage, or NV", required=False, max_length=20, widget=forms.TextInput({"size": 6}))

    def clean(self, value: Any) -> Any:
        try:
            found = read_vintage(super().clean(value))
        except UnclearVintageError as error:
            raise forms.ValidationError("Enter a year, NV, or nothing where you do not know.") from error
        return (found.year, found.year is None) if found else (None, False)


class DayField(forms.DateField):
    def __init__(self, label: str, *, required: bool = False) -> None:
        widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
        super().__init__(label=label, required=required, widget=widget, input_formats=["%Y-%m-%d"])
        self.error_messages["invalid"] = "Enter a date as year-month-day, such as 2024-05-17."
        self.error_messages["required"] = "Enter the day."


def currency_field(label: str) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=[(code, code) for code in sorted(CURRENCIES)], initial="USD")


class BottleForm(forms.Form):
    """All that is written about bottles. `described` says whether the wine is typed, or one of the catalogue."""

    name = forms.CharField(label="Wine", max_length=200)
    producer = forms.CharField(label="Producer", max_length=200, required=False)
    vintage = VintageField()
    size_ml = forms.TypedChoiceField(label="Size", coerce=int, initial=BOTTLE_ML)
    colour = forms.ChoiceField(label="Colour", required=False)
    country = forms.CharField(label="Country", max_length=80, required=False)
    region = forms.CharField(label="Region", max_length=120, required=False)
    quantity = CountField("Bottles")
    paid = AmountField("Paid for one bottle")
    paid_currency = currency_field("Currency of the price")
    purchased_on = DayField("Bought on")
    store = forms.CharField(label="Bought at", max_length=120, required=False)
    location = forms.CharField(label="Location", max_length=80, required=False)
    bin = forms.CharField(label="Bin", max_length=80, required=False)
    drink_from = YearField("Drink from")
    drink_until = YearField("Drink until")
    own_value = AmountField("What you say one is worth")
    own_currency = currency_field("Currency of your value")
    note = forms.CharField(label="Note", max_length=1000, required=False)

    def __init__(self, *args: Any, bottle: Bottle | None = None, currency: str = "USD", **options: Any) -> None:
        if bottle is not None:
            options["initial"] = {**_initial(bottle), **options.get("initial", {})}
        super().__init__(*args, **options)
        sizes = sorted({*SIZES, bottle.size_ml} if bottle else SIZES)
        self.fields["size_ml"].choices = [(size, size_words(size)) for size in sizes]  # type: ignore[attr-defined]
        self.fields["colour"].choices = [("", "–"), *Bottle._meta.get_field("colour").choices]  # type: ignore
        if bottle is not None:
            self.fields["quantity"].least = 0  # type: ignore[attr-defined]
        for name in ("paid_currency", "own_currency"):
            self.fields[name].initial = currency

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        first, last = data.get("drink_from"), data.get("drink_until")
        if first and last and last < first:
            self.add_error("drink_until", f"This is before the first year, {first}.")
        return data

    def facts(self) -> dict[str, Any]:
        """The fields of Bottle, but for the quantity."""
        data = self.cleaned_data
        facts = {
            name: data[name] for name in (*DESCRIBED, *TEXTS, "size_ml", "purchased_on", "drink_from", "drink_until")
        }
        facts["vintage"], facts["non_vintage"] = data["vintage"]
        for amount, currency in (("paid", "paid_currency"), ("own_value", "own_currency")):
            facts[amount] = data[amount]
            facts[currency] = data[currency] if data[amount] else ""
        return facts


def _initial(bottle: Bottle) -> dict[str, Any]:
    fields = (
        *DESCRIBED,
        *TEXTS,
        "size_ml",
        "quantity",
        "paid",
        "purchased_on",
        "drink_from",
        "drink_until",
        "own_value",
    )
    initial = {name: getattr(bottle, name) for name in fields}
    currencies = {"paid_currency": bottle.paid_currency, "own_currency": bottle.own_currency}
    return initial | {"vintage": bottle.vintage_words} | {name: code for name, code in currencies.items() if code}


class ConsumeForm(forms.Form):
    quantity = CountField("How many")
    how = forms.ChoiceField(label="What became of them", choices=Consumption.How.choices)
    on = DayField("When", required=True)
    note = forms.CharField(label="Note", max_length=1000, required=False)

    def __init__(self, *args: Any, today: date, **options: Any) -> None:
        super().__init__(*args, **{"initial": {"quantity": 1, "on": today}, **options})
        self.today = today

    def clean_on(self) -> date:
        on: date = self.cleaned_data["on"]
        if on > self.today:
            raise forms.ValidationError("Enter today or a day before.")
        return on


class MoveForm(forms.Form):
    quantity = CountField("How many")
    location = forms.CharField(label="To location", max_length=80, required=False)
    bin = forms.CharField(label="Bin", max_length=80, required=False)


class CellarForm(forms.ModelForm):  # type: ignore[type-arg]
    """Only currencies of which we know a rate can be reckoned in."""

    currency = forms.ChoiceField(label="Value it in")

    class Meta:
        model = Cellar
        fields = ("currency", "scales_by_size")

    def __init__(self, *args: Any, currencies: list[str], **options: Any) -> None:
        super().__init__(*args, **options)
        known = sorted({*currencies, self.instance.currency})
        self.fields["currency"].choices = [(code, code) for code in known]  # type: ignore[attr-defined]


class FileForm(forms.Form):
    file = forms.FileField(label="File", error_messages={"required": "Choose a file.", "empty": "The file is empty."})
    decimal_sign = forms.ChoiceField(
        label="Cents stand after",
        required=False,
        choices=[("", "find out from the prices"), (".", "a point, as in 1,250.50"), (",", "a comma, as in 1.250,50")],
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        most = settings.CELLAR_MAX_FILE_BYTES
        if file.size > most:
            raise forms.ValidationError(
                f"The file has more than {most // 1_000_000} MB. Export fewer columns or tables."
            )
        return file
