"""Amounts as payment providers count them: whole numbers of a currency's smallest unit. Pure.

Guarantee: what is not a whole number of units, or more than a provider takes, is refused, never rounded.
"""

from __future__ import annotations

from decimal import Decimal

# Stripe, “Supported currencies”: charged in whole units; and those whose thousandths must end in 0, as ours do.
WITHOUT_CENTS = frozenset(
    ["BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"]
)
WITH_THOUSANDTHS = frozenset(["BHD", "JOD", "KWD", "OMR", "TND"])
MOST_UNITS = 99_999_999  # eight digits, in most currencies


class AmountError(ValueError):
    """The amount cannot be charged; the text says why."""


def _exponent(currency: str) -> int:
    return 0 if currency in WITHOUT_CENTS else 3 if currency in WITH_THOUSANDTHS else 2


def units(amount: Decimal, currency: str) -> int:
    """Dollars to cents: 154.00 USD is 15400, 1540 JPY is 1540. Raises AmountError."""
    scaled = amount.scaleb(_exponent(currency))
    if scaled != scaled.to_integral_value():
        raise AmountError(f"{currency} has no smaller parts than {Decimal(1).scaleb(-_exponent(currency))}.")
    if not 0 < scaled <= MOST_UNITS:
        raise AmountError(f"An amount must be above 0 and at most {amount_of(MOST_UNITS, currency)} {currency}.")
    return int(scaled)


def amount_of(count: int, currency: str) -> Decimal:
    """Cents to dollars."""
    return Decimal(count).scaleb(-_exponent(currency)).quantize(Decimal("0.01"))
