"""Which wine of the catalogue a bottle is: the matching of merchants' listings, asked for somebody's bottles.

Guarantee: a link is made only where one wine fits for certain. A bottle of another size than any wine of that name may
be linked to the ordinary bottle; its value is then scaled, or not, as the cellar says. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.db.models import Q

from pricing.listings import candidate
from pricing.matching import By, Candidates, Listed, Match, match, read_listing
from pricing.models import Wine
from pricing.sizes import BOTTLE_ML, Packing
from pricing.titles import Vintage
from winecellar.cellars.files.lots import Facts


def said_wines(bottles: Iterable[Facts]) -> Mapping[Facts, Match]:
    """The wines that those bottles name by our own id, as our own files do: 1 query."""
    said = {facts: facts.wine_id for facts in bottles if facts.wine_id}
    there = set(Wine.objects.filter(pk__in=set(said.values())).values_list("pk", flat=True))
    return {facts: Match(wine_id, By.WINE_ID) for facts, wine_id in said.items() if wine_id in there}


def find_wines(bottles: Iterable[Facts]) -> Mapping[Facts, Match]:
    """The wines of those bottles for which that is certain: 1 query."""
    listed = {facts: _listed(facts) for facts in bottles}
    years = {each.vintage.year for each in listed.values() if each.vintage}
    marked = Q(gtin__in={each.gtin for each in listed.values() if each.gtin}) | Q(vintage__in=years - {None})
    if None in years:
        marked |= Q(vintage__isnull=True)
    wines = Candidates(map(candidate, Wine.objects.filter(marked, retired_at__isnull=True).iterator()))
    found = {}
    for facts, each in listed.items():
        if hit := _match(each, wines):
            found[facts] = hit
    return found


def _match(listed: Listed, wines: Candidates) -> Match | None:
    exact = match(listed, wines, unsaid_size_ml=None)
    if exact or not listed.packing or listed.packing.size_ml == BOTTLE_ML:
        return exact
    return match(replace(listed, packing=Packing(1, BOTTLE_ML), gtin=""), wines, unsaid_size_ml=None)


def _listed(facts: Facts) -> Listed:
    """As matching sees it: what the fields say counts, whatever stands in the name."""
    read = read_listing(facts.name, gtin=facts.gtin)
    vintage = Vintage(facts.vintage) if facts.vintage or facts.non_vintage else read.vintage
    return replace(read, vintage=vintage, packing=Packing(1, facts.size_ml), unclear="")
