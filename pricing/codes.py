"""Numbers that others gave to wines: GTIN (the bar code) and LWIN (Liv-ex). Pure.

Guarantee: a number with a typing error is refused where it has a check digit, and what LWIN says of vintage, pack and
size is read, not guessed. Used where listings are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pricing.sizes import Packing
from pricing.titles import Vintage

GTIN_DIGITS = 14
LWIN_DIGITS = 7
LWIN_NON_VINTAGE = 1000


class InvalidCodeError(Exception):
    """The text is no such number; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class Lwin:
    """The wine's seven digits, and what the longer forms add: None where the form is too short to say it."""

    wine: str
    vintage: Vintage | None = None
    packing: Packing | None = None


def read_gtin(text: str) -> str:
    """A GTIN-8, -12, -13 or -14 as fourteen digits. Raises InvalidCodeError."""
    digits = re.sub(r"[ -]", "", text)
    if not re.fullmatch(r"[0-9]{8}|[0-9]{12,14}", digits):
        raise InvalidCodeError("A GTIN has 8, 12, 13 or 14 digits.")
    padded = digits.zfill(GTIN_DIGITS)
    total = sum(int(digit) * (3 if place % 2 == 0 else 1) for place, digit in enumerate(padded[:-1]))
    if (total + int(padded[-1])) % 10:
        raise InvalidCodeError("The GTIN's check digit is wrong.")
    if not int(padded):
        raise InvalidCodeError("A GTIN is not all zeros.")
    return padded


def read_lwin(text: str) -> Lwin:
    """An LWIN of 7 digits (the wine), 11 (its vintage), 16 (the bottle) or 18 (the pack). Raises InvalidCodeError."""
    digits = re.sub(r"(?i)^lwin|[ -]", "", text.strip())
    if not re.fullmatch(r"[0-9]{7}|[0-9]{11}|[0-9]{16}|[0-9]{18}", digits):
        raise InvalidCodeError("An LWIN has 7, 11, 16 or 18 digits.")
    wine, year, rest = digits[:7], digits[7:11], digits[11:]
    vintage = None
    if year:
        vintage = Vintage(None if int(year) == LWIN_NON_VINTAGE else int(year))
    packing = None
    if rest:
        pack, size_ml = int(rest[:-5] or "1"), int(rest[-5:])
        if not pack or not size_ml:
            raise InvalidCodeError("The LWIN names no bottle.")
        packing = Packing(pack, size_ml)
    return Lwin(wine, vintage, packing)
