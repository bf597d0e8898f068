"""Which wine of the catalogue a bottle is: the matching of merchants' listings, asked for somebody's bottles.

Guarantee: a link is made only where one wine fits for certain. A bottle of another size than any wine of that name may
be linked to the ordinary bottle; its value is then scaled, or not, as the cellar says. Reads only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from django.db.models import Q

from pricing.matching import By, Candidate, Candidates, Listed, Match, match, read_listing
from pricing.models import Wine
from pricing.sizes import BOTTLE_ML, Packing
from pricing.titles import Vintage
from winecellar.cellars.files.lots import Facts


class Said(NamedTuple):
    """What of a bottle says which wine it is. `wine_id` is our own id, as our own files have it."""

    name: str
    vintage: int | None
    non_vintage: bool
    size_ml: int
    gtin: str
    wine_id: str


def said(facts: Facts) -> Said:
    return Said(facts.name, facts.vintage, facts.non_vintage, facts.size_ml, facts.gtin, facts.wine_id)


def named_wines(bottles: Collection[Said]) -> dict[Said, Match]:
    """The wines that those bottles name by our own id: 1 query."""
    wanted = {each.wine_id for each in bottles if each.wine_id}
    there = set(Wine.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    return {each: Match(each.wine_id, By.WINE_ID) for each in bottles if each.wine_id in there}


def find_wines(bottles: Collection[Said]) -> dict[Said, Match]:
    """The wines of those bottles for which that is certain: 1 query."""
    listed = {each: _listed(each) for each in bottles}
    wines = Candidates(_candidates(listed.values()))
    return {each: hit for each in bottles if (hit := _match(listed[each], wines))}


COLUMNS = ("id", "name", "producer", "region", "vintage", "size_ml", "gtin", "lwin")  # as Candidate has them


def _candidates(listed: Collection[Listed]) -> Iterator[Candidate]:
    """All wines that one of these could be."""
    years = {each.vintage.year for each in listed if each.vintage}
    marked = Q(gtin__in={each.gtin for each in listed if each.gtin}) | Q(vintage__in=years - {None})
    if None in years:
        marked |= Q(vintage__isnull=True)
    for row in Wine.objects.filter(marked, retired_at__isnull=True).values_list(*COLUMNS).iterator():
        yield Candidate(*row)


def _match(listed: Listed, wines: Candidates) -> Match | None:
    exact = match(listed, wines, unsaid_size_ml=None)
    if exact or not listed.packing or listed.packing.size_ml == BOTTLE_ML:
        return exact
    return match(replace(listed, packing=Packing(1, BOTTLE_ML), gtin=""), wines, unsaid_size_ml=None)


@lru_cache(maxsize=10_000)
def _read(name: str, gtin: str) -> Listed:
    return read_listing(name, gtin=gtin)


def _listed(said: Said) -> Listed:
    """As matching sees it: what the fields say counts, whatever stands in the name."""
    read = _read(said.name, said.gtin)
    vintage = Vintage(said.vintage) if said.vintage or said.non_vintage else read.vintage
    return replace(read, vintage=vintage, packing=Packing(1, said.size_ml), unclear="")
