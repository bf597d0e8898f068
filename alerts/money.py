"""Amounts as sentences say them: “$154.00”, “€92.00”, “CHF 88.00”. Pure; the pages' own filter writes the same."""

from decimal import Decimal

SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}
NO_BREAK = "\u00a0"


def said(amount: Decimal, currency: str) -> str:
    """With two decimals, and a sign only where it is no other currency's."""
    return f"{SIGNS.get(currency, currency + NO_BREAK)}{amount:,.2f}"
