"""What a small request will most likely ask about, seen before it is known who sent it. Pure.

Guarantee: a guess and no more. Nothing is believed of it: whoever uses what was looked up for it compares its two
values with those that the request, once it is read by all the rules, really has. It saves one round trip.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pricing.feeds.canonical import LONGEST_DELIVERY_ID, WINE_ID_PATTERN

LONGEST = 2_048  # bytes; a single price has about 120
# As canonical.py has them, but for what JSON writes in more than one way.
_WINE_ID = re.compile(rf'"wine_id"\s{{0,8}}:\s{{0,8}}"({WINE_ID_PATTERN})"'.encode())
_DELIVERY_ID = re.compile(rf'"delivery_id"\s{{0,8}}:\s{{0,8}}"([ !#-\[\]-~]{{1,{LONGEST_DELIVERY_ID}}})"'.encode())
_KEY = re.compile(rf"[ -~]{{1,{LONGEST_DELIVERY_ID}}}")


@dataclass(frozen=True, slots=True)
class Glance:
    """A wine's id, and the key of the request; None for one that has none."""

    wine_id: str
    key: str | None


def glance(key: str | None, body: bytes) -> Glance | None:
    """The first wine that a body names, and `key`, the request's own, or the id in the body. None: it tells nothing."""
    wine = _WINE_ID.search(body)
    if wine is None or b'"observations"' in body or not (key is None or _KEY.fullmatch(key)):
        return None
    if key is None and (found := _DELIVERY_ID.search(body)):
        key = found[1].decode("ascii")
    return Glance(wine[1].decode("ascii"), key)
