"""How long things took, as counts in buckets whose bounds grow by a fifth: small, and they add up. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

FINEST = 0.001  # seconds: the first bucket's upper bound
PER_DOUBLING = 4
LAST = 108  # FINEST doubled 27 times: a day and a half


def bucket(seconds: float) -> int:
    """The bucket of a duration: the first one whose bound is not below it."""
    if seconds <= FINEST:
        return 0
    return min(math.ceil(PER_DOUBLING * math.log2(seconds / FINEST) - 1e-9), LAST)


def bound(number: int) -> float:
    """The upper bound of a bucket in seconds; what a quantile says is at most this, and above the bound before it."""
    return float(FINEST * 2 ** (number / PER_DOUBLING))


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """The bound that so large a share of what was counted does not pass; None when nothing was."""
    total = sum(counts.values())
    if not total:
        return None
    seen = 0
    for number in sorted(counts):
        seen += counts[number]
        if seen >= share * total:
            return bound(number)
    raise AssertionError("the last bucket completes it")
