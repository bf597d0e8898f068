"""A wine's name as merchants write it, taken apart: name, vintage, bottle. Pure.

Guarantee: what is left of the name holds every word that was not understood, so that two names are the same only if
nothing else was said. Used where listings are matched to wines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pricing.folding import fold
from pricing.sizes import Packing, find_packing

EARLIEST_VINTAGE, LATEST_VINTAGE = 1800, 2099
# What cellars and price lists write for “none” and for “not known”.
NON_VINTAGE_WORDS = frozenset({"nv", "n.v.", "n.v", "n/v", "non vintage", "non millesime", "sans annee", "1001"})
UNKNOWN_WORDS = frozenset({"", "9999", "unknown", "n/a", "(n/a)", "na", "none", "null"})
# One word for what is written in several ways.
ABBREVIATED = {
    "ch": "chateau",
    "cht": "chateau",
    "chat": "chateau",
    "dom": "domaine",
    "bod": "bodega",
    "st": "saint",
    "ste": "sainte",
    "and": "et",
    "und": "et",
    "e": "et",
    "y": "et",
}
_YEAR = re.compile(r"(?<![\w.,/'])(1[89][0-9]{2}|20[0-9]{2})(?![\w/]|[.,][0-9])")
_NON_VINTAGE = re.compile(r"(?<!\w)(?:n\.v\.?|n/v|nv|non vintage|non millesime|sans annee)(?!\w)")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


@dataclass(frozen=True, slots=True)
class Vintage:
    """A year, or None for a wine that has none on purpose (NV)."""

    year: int | None


@dataclass(frozen=True, slots=True)
class Title:
    """A title taken apart. `vintage` and `packing` are None where it says nothing of them."""

    name: str
    vintage: Vintage | None
    packing: Packing | None


class UnclearVintageError(Exception):
    """The text names more years than one, or something that is no vintage."""


def read_vintage(text: str) -> Vintage | None:
    """What a field for the vintage says; None when it says that it is not known. Raises UnclearVintageError."""
    folded = " ".join(fold(text).split())
    if folded in UNKNOWN_WORDS:
        return None
    if folded in NON_VINTAGE_WORDS:
        return Vintage(None)
    if not re.fullmatch(r"[0-9]{4}", folded, re.ASCII) or not EARLIEST_VINTAGE <= int(folded) <= LATEST_VINTAGE:
        raise UnclearVintageError("That is no vintage.")
    return Vintage(int(folded))


def read_title(text: str) -> Title:
    """Take a title apart. Raises UnclearVintageError, or sizes.UnclearSizeError."""
    packing, rest = find_packing(text)
    years = {int(year) for year in _YEAR.findall(rest)}
    without = bool(_NON_VINTAGE.search(rest))
    if len(years) + without > 1:
        raise UnclearVintageError("It names more than one vintage.")
    vintage = Vintage(years.pop()) if years else Vintage(None) if without else None
    return Title(comparable(_NON_VINTAGE.sub(" ", _YEAR.sub(" ", rest))), vintage, packing)


def comparable(name: str) -> str:
    """The words of a name, spelt in one way: “Ch. Saint-Émilion & Fils” is “chateau saint emilion et fils”."""
    words = _WORD.findall(fold(name).replace("&", " et "))
    return " ".join(ABBREVIATED.get(word, word) for word in words)
