"""A price's cell: its amount, and the currency that it names. Pure.

Guarantee: what is no price (empty, 0, “on request”) is None; what is none for certain (negative, words, more decimals
than the currency has, another currency than the row's) is refused, never rounded or read halfway.
"""

from __future__ import annotations

import re
from decimal import Decimal

from pricing.catalogues.numbers import NumberStyle, decimals, take_apart
from pricing.catalogues.options import Unit
from pricing.contract import CURRENCIES, LARGEST_NATIVE_PRICE, LARGEST_PRICE, PRICE_CURRENCY
from pricing.folding import fold

STORED_DECIMALS = 2  # of an offer's price
# ISO 4217's minor units, where there are not two.
MINOR_UNITS = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW"), 0),
    **dict.fromkeys(("PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
}
# All that are written with a dollar's sign somewhere, pesos too.
_DOLLARS = frozenset(
    {
        *("USD", "AUD", "BBD", "BMD", "BND", "BSD", "BZD", "CAD", "FJD", "GYD", "HKD", "JMD", "KYD", "LRD", "NAD"),
        *("NZD", "SGD", "TTD", "TWD", "XCD", "MXN", "ARS", "CLP", "COP", "UYU"),
    }
)
# What signs and abbreviations can mean; of several, the row or the merchant's settings say which.
SIGNS: dict[str, frozenset[str]] = {
    "€": frozenset({"EUR"}),
    "euro": frozenset({"EUR"}),
    "euros": frozenset({"EUR"}),
    "£": frozenset({"GBP"}),
    "$": _DOLLARS,
    **{sign: frozenset({code}) for sign, code in (("us$", "USD"), ("$us", "USD"), ("a$", "AUD"), ("au$", "AUD"))},
    **{sign: frozenset({code}) for sign, code in (("c$", "CAD"), ("ca$", "CAD"), ("hk$", "HKD"), ("s$", "SGD"))},
    **{sign: frozenset({code}) for sign, code in (("nz$", "NZD"), ("r$", "BRL"), ("nt$", "TWD"))},
    "¥": frozenset({"JPY", "CNY"}),
    "fr": frozenset({"CHF"}),
    "sfr": frozenset({"CHF"}),
    "kr": frozenset({"DKK", "NOK", "SEK", "ISK"}),
    "zł": frozenset({"PLN"}),
    "kc": frozenset({"CZK"}),
    "ft": frozenset({"HUF"}),
    "r": frozenset({"ZAR"}),
    "₹": frozenset({"INR"}),
    "₩": frozenset({"KRW"}),
    "₽": frozenset({"RUB"}),
    "₺": frozenset({"TRY"}),
    "₴": frozenset({"UAH"}),
    "₪": frozenset({"ILS"}),
    "฿": frozenset({"THB"}),
}
SIGNS["zl"] = SIGNS["zł"]
# What is written where there is no price, folded.
NO_PRICE = frozenset(
    {
        *("", "-", "--", "n/a", "(n/a)", "na", "none", "null", "nil", "tba", "poa", "p.o.a.", "por", "on request"),
        *("price on request", "price on application", "auf anfrage", "preis auf anfrage", "sur demande"),
        *("prix sur demande", "nous consulter"),
    }
)
_NOTHING = re.compile(r"[0., '-]*")


class InvalidPriceError(Exception):
    """The cell is no price; the message says why, for a person."""


class InvalidCurrencyError(Exception):
    """The row's currency is none, or the cell's is another; the message says why, for a person."""


def read_price(text: str, style: NumberStyle, *, currency: str, unit: str = Unit.CURRENCY) -> Decimal | None:
    """The price in a cell, in units of its currency, with two decimals; None where there is none.

    Raises InvalidPriceError. What the cell says of its currency is `read_currency`'s business.
    """
    cell = take_apart(text)
    if cell is None:
        if says_nothing(text):
            return None
        raise InvalidPriceError("That is no price.")
    if "-" in cell.before or "(" in cell.before or cell.after == "-":
        raise InvalidPriceError("A price is not negative.")
    digits = re.sub(r"[^0-9]", "", cell.number)
    if not digits.strip("0"):
        return None
    largest = LARGEST_PRICE if currency == PRICE_CURRENCY else LARGEST_NATIVE_PRICE
    if len(digits) > 15:
        raise InvalidPriceError(f"A price in {currency} is at most {largest}.")
    places = decimals(cell.number, style)
    if places is None:
        raise InvalidPriceError(f"It is not written as the file's other prices are, {_words(style)}.")
    minor = MINOR_UNITS.get(currency, 2)
    if unit == Unit.CENTS:
        if places:
            raise InvalidPriceError("A price in cents has no decimals.")
        places = minor
    amount = Decimal(int(digits)).scaleb(-places)
    kept = min(minor, STORED_DECIMALS)
    if amount != amount.quantize(Decimal(1).scaleb(-kept)):
        raise InvalidPriceError(f"A price in {currency} has at most {kept} decimals.")
    if amount > largest:
        raise InvalidPriceError(f"A price in {currency} is at most {largest}.")
    return amount.quantize(Decimal(1).scaleb(-STORED_DECIMALS))


def says_nothing(text: str) -> bool:
    """Whether a cell says that there is no price, whatever the style: empty, some form of 0, or in words."""
    folded = " ".join(fold(text).split())
    if folded in NO_PRICE:
        return True
    cell = take_apart(text)
    return cell is not None and bool(_NOTHING.fullmatch(cell.number))


def read_currency(text: str, *, said: str, usual: str) -> str:
    """The currency of a price: the row's, if it `said` one, else the cell's, else what is `usual` for the merchant.

    Raises InvalidCurrencyError if there is none, if the cell contradicts the row, or if a sign can mean several.
    """
    row = meant(said) if said else None
    possible = row
    cell = take_apart(text)
    for mark in (cell.before, cell.after) if cell else ():
        bare = mark.strip(" -()/")
        if not bare:
            continue
        named = meant(bare)
        possible = named if possible is None else possible & named
        if not possible:
            raise InvalidCurrencyError("The price names another currency than its row, or two.")
    if possible is None:
        if not usual:
            raise InvalidCurrencyError("It names no currency, and we do not know yours. Tell us, or add a column.")
        return usual
    if len(possible) == 1:
        return next(iter(possible))
    if usual in possible:
        return usual
    raise InvalidCurrencyError(f"{said or text} can be several currencies. Write the code, such as USD.")


def meant(mark: str) -> frozenset[str]:
    """The currencies that a code or sign can mean. Raises InvalidCurrencyError if it is none."""
    code = mark.strip().upper()
    if code in CURRENCIES:
        return frozenset({code})
    if known := SIGNS.get(fold(mark).strip(" .")):
        return known
    raise InvalidCurrencyError("That is no currency. Write its ISO 4217 code, such as USD.")


def _words(style: NumberStyle) -> str:
    return f"with “{style.decimal}” as the decimal sign" if style.decimal else "without decimals"
