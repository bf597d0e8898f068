"""Which wine a merchant's listing is: the decision alone. Pure.

Guarantee: a listing is matched only if nothing it says speaks against the wine and exactly one wine fits, by wine id,
LWIN or GTIN, or name; a case, another size and another vintage never match. What is not certain waits for a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from pricing.codes import InvalidCodeError, Lwin, read_gtin, read_lwin
from pricing.sizes import Packing, UnclearSizeError, read_packing
from pricing.titles import Title, UnclearVintageError, Vintage, comparable, read_title, read_vintage

Said = TypeVar("Said")


class By(StrEnum):
    WINE_ID = "wine_id"
    LWIN = "lwin"
    GTIN = "gtin"
    NAME = "name"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Listed:
    """One thing that a merchant sells: what the merchant says it is. None and "" where it does not say.

    `unclear` says what cannot be read for certain, in words; such a listing waits, whatever else it says.
    """

    title: str
    name: str
    vintage: Vintage | None
    packing: Packing | None
    gtin: str = ""
    lwin: str = ""
    wine_id: str = ""
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """A listing with the merchant's own id of it, and what is asked for it: no price when there is none.

    What is not `in_stock` can be bought at no price, whatever it says. `tax` is as for rules.Observation.
    """

    source_id: str
    listed: Listed
    price: Decimal | None
    currency: str
    occurred_at: datetime
    in_stock: bool = True
    tax: str = ""


# Many wines are of one producer or region.
_often = lru_cache(maxsize=10_000)(comparable)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A wine as matching sees it. A vintage of None is NV."""

    wine_id: str
    name: str
    producer: str
    region: str
    vintage: int | None
    size_ml: int
    gtin: str
    lwin: str

    def names(self) -> set[str]:
        """All that it may be called: with its producer before or behind, with its region or without."""
        name, producer, region = comparable(self.name), _often(self.producer), _often(self.region)
        called = {name, f"{producer} {name}".strip(), f"{name} {producer}".strip()}
        return called | {f"{each} {region}".strip() for each in called}


@dataclass(frozen=True, slots=True)
class Match:
    wine_id: str
    by: By


def read_listing(
    title: str, *, size: str = "", vintage: str = "", gtin: str = "", lwin: str = "", wine_id: str = ""
) -> Listed:
    """Put together what a listing's title and fields say. Never raises: what does not fit is `unclear`.

    `size` is a text that speaks of size alone, if the sender has one, such as the name of a variant.
    """
    unclear: list[str] = []
    taken, code, bar = Title(comparable(title), None, None), None, ""
    try:
        taken = read_title(title)
    except (UnclearSizeError, UnclearVintageError) as error:
        unclear.append(f"title: {error}")
    said_vintage, said_packing = None, None
    try:
        said_packing = read_packing(size) if size.strip() else None
    except UnclearSizeError as error:
        unclear.append(f"size: {error}")
    try:
        said_vintage = read_vintage(vintage)
    except UnclearVintageError as error:
        unclear.append(f"vintage: {error}")
    try:
        code = read_lwin(lwin) if lwin.strip() else None
        bar = read_gtin(gtin) if gtin.strip() else ""
    except InvalidCodeError:
        pass  # a wrong number says nothing; the rest may still do
    known = code or Lwin("")
    return Listed(
        title=title,
        name=taken.name,
        vintage=_agreed((taken.vintage, said_vintage, known.vintage), "vintages", unclear),
        packing=_agreed((taken.packing, said_packing, known.packing), "sizes", unclear),
        gtin=bar,
        lwin=known.wine,
        wine_id=wine_id,
        unclear=" ".join(unclear),
    )


def _agreed(said: Iterable[Said | None], what: str, unclear: list[str]) -> Said | None:
    different = {each for each in said if each is not None}
    if len(different) > 1:
        unclear.append(f"It speaks of different {what}.")
        return None
    return different.pop() if different else None


def objection(listed: Listed, wine: Candidate) -> str | None:
    """What the listing says that speaks against the wine, in words, or None. Holds for people as well."""
    if listed.packing and listed.packing.pack != 1:
        return f"This is a pack of {listed.packing.pack} bottles, and its price is not that of one."
    if listed.packing and listed.packing.size_ml != wine.size_ml:
        return f"This is a bottle of {listed.packing.size_ml} ml, and the wine has {wine.size_ml} ml."
    if listed.vintage and listed.vintage.year != wine.vintage:
        return f"This is the vintage {listed.vintage.year or 'NV'}, and the wine is {wine.vintage or 'NV'}."
    return None


class Candidates:
    """The wines that listings may be, found by any of their marks."""

    def __init__(self, wines: Iterable[Candidate]) -> None:
        self.by_id: dict[str, list[Candidate]] = {}
        self.by_lwin: dict[str, list[Candidate]] = {}
        self.by_gtin: dict[str, list[Candidate]] = {}
        self.by_name: dict[str, list[Candidate]] = {}
        for wine in wines:
            self.by_id[wine.wine_id] = [wine]
            self.by_lwin.setdefault(wine.lwin, []).append(wine)
            self.by_gtin.setdefault(wine.gtin, []).append(wine)
            for name in wine.names():
                self.by_name.setdefault(name, []).append(wine)


def match(listed: Listed, candidates: Candidates, *, unsaid_size_ml: int | None) -> Match | None:
    """The wine that the listing is, if that is certain. `candidates` has all wines that one of its marks could name.

    `unsaid_size_ml` is what a listing of this merchant means that says nothing of its size; None: it is not known.
    """
    if listed.unclear:
        return None
    if listed.packing is None and unsaid_size_ml:
        listed = replace(listed, packing=Packing(1, unsaid_size_ml))
    if listed.wine_id:
        return _only(candidates.by_id.get(listed.wine_id, ()), listed, By.WINE_ID)
    found = None
    # An LWIN's first seven digits are a wine in any bottle.
    if listed.lwin and listed.packing:
        found = _only(_dated(candidates.by_lwin.get(listed.lwin, ()), listed), listed, By.LWIN)
    if listed.gtin and not found:
        found = _only(_dated(candidates.by_gtin.get(listed.gtin, ()), listed), listed, By.GTIN)
    if listed.name and listed.vintage and listed.packing and not found:
        found = _only(candidates.by_name.get(listed.name, ()), listed, By.NAME)
    return found


def _dated(wines: Iterable[Candidate], listed: Listed) -> Iterable[Candidate]:
    """Both numbers are used for vintage after vintage: where none is said, only a wine without one can be meant."""
    return [wine for wine in wines if listed.vintage or wine.vintage is None]


def _only(wines: Iterable[Candidate], listed: Listed, by: By) -> Match | None:
    fitting = {wine.wine_id for wine in wines if objection(listed, wine) is None}
    return Match(fitting.pop(), by) if len(fitting) == 1 else None


def rank(listed: Listed, candidates: Iterable[Candidate], *, most: int) -> list[Candidate]:
    """The wines that a person may mean, likeliest first: those that share words, and contradict nothing."""
    words = set(listed.name.split())
    scored = []
    for wine in candidates:
        theirs = set(comparable(f"{wine.producer} {wine.name} {wine.region}").split())
        shared = len(words & theirs)
        if shared and objection(listed, wine) is None:
            named = len(words & set(comparable(wine.name).split()))
            scored.append(((-named, -shared, len(theirs), wine.wine_id), wine))
    return [wine for _, wine in sorted(scored, key=lambda pair: pair[0])[:most]]
