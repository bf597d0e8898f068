"""What a file says of whether a thing can be bought. Pure.

Guarantee: a word that is not known is refused, for a price that nobody can pay is not one. Used by interpret.py.
"""

from __future__ import annotations

import re

from pricing.folding import fold

# Folded, with spaces for what is between words. What can be ordered now counts as sold, though it comes later.
SOLD = frozenset(
    {
        *("in stock", "instock", "available", "yes", "y", "true", "on sale", "limited availability", "low stock"),
        *("preorder", "pre order", "backorder", "back order", "available for order", "en primeur", "pre arrival"),
        *("ja", "auf lager", "lagernd", "verfugbar", "lieferbar", "sofort lieferbar", "vorbestellbar", "subskription"),
        *("oui", "en stock", "disponible", "disponibile", "si", "precommande", "sur commande"),
    }
)
NOT_SOLD = frozenset(
    {
        *("out of stock", "outofstock", "unavailable", "not available", "sold out", "no", "n", "false", "discontinued"),
        *("nein", "ausverkauft", "nicht verfugbar", "nicht lieferbar", "nicht auf lager", "vergriffen"),
        *("non", "epuise", "rupture", "rupture de stock", "en rupture", "en rupture de stock", "indisponible"),
        *("non disponible", "agotado", "esaurito"),
    }
)
_COUNT = re.compile(r"[<>]?\s*(-?[0-9]{1,9})(?:[.,]0+)?\s*\+?(?:\s*(?:bottles?|btls?|flaschen?|bouteilles?|st|stk))?")


class UnclearAvailabilityError(Exception):
    """The text is neither a number nor a word that is known."""


def is_sold(text: str) -> bool:
    """Whether it can be bought: so it is where nothing is said, else by word or number. Raises the error above."""
    words = " ".join(re.sub(r"[_\-.]+(?=\D|$)", " ", fold(text)).split())
    if not words or words in SOLD:
        return True
    if words in NOT_SOLD:
        return False
    if found := _COUNT.fullmatch(" ".join(text.lower().split())):
        return int(found[1]) > 0
    raise UnclearAvailabilityError("It neither says “in stock” or “out of stock” nor how many there are.")
