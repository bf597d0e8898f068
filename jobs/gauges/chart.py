"""The last hours of a subscription as geometry: how long its longest waiting waited, against what is promised. Pure.

Where nobody counted there is a gap, and no line that would say that all was well. Drawn by the operators' page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.gauges.figures import Point
from jobs.words import span

WIDTH, HEIGHT = 1000, 60  # a box that the browser stretches, with strokes that do not stretch
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Chart:
    """`wait` is a line and `depth` an area, each on a scale of its own; `promise` is how far down its line lies."""

    wait: str
    depth: str
    promise: float
    words: str
    width: int = WIDTH
    height: int = HEIGHT


def draw(points: Sequence[Point], *, since: datetime, until: datetime, promise: timedelta) -> Chart:
    """`points`: one subscription's minutes, oldest first. The words say the same to whoever cannot see it."""
    known = [point for point in points if point.depth is not None]
    waits = [point.due_seconds or 0 for point in known]
    depths = [point.depth or 0 for point in known]
    top = max([*waits, 1.2 * promise.total_seconds()])
    deepest = max([*depths, 1])

    def x(at: datetime) -> float:
        return round((at - since) / (until - since) * WIDTH, 1)

    def y(value: float, most: float) -> float:
        return round((1 - value / most) * (HEIGHT - 2) + 1, 1)

    wait, depth = [], []
    for stretch in _stretches(known):
        xs = [x(point.minute) for point in stretch]
        wait.append("M" + "L".join(f"{a:g} {y(p.due_seconds or 0, top):g}" for a, p in zip(xs, stretch, strict=True)))
        wait.append(f"H{xs[-1] + 1:g}")
        along = "L".join(f"{a:g} {y(p.depth or 0, deepest):g}" for a, p in zip(xs, stretch, strict=True))
        depth.append(f"M{xs[0]:g} {HEIGHT}L{along}H{xs[-1] + 1:g}V{HEIGHT}Z")
    return Chart(
        "".join(wait), "".join(depth), y(promise.total_seconds(), top), _words(known, waits, depths, since, until)
    )


def _stretches(points: Sequence[Point]) -> list[list[Point]]:
    """Runs of minutes with at most one missing between."""
    runs: list[list[Point]] = []
    for point in points:
        if runs and point.minute - runs[-1][-1].minute <= 2 * MINUTE:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _words(
    known: Sequence[Point], waits: Sequence[float], depths: Sequence[int], since: datetime, until: datetime
) -> str:
    hours = span(until - since)
    if not known:
        return f"Nobody counted in the last {hours}."
    worst = max(range(len(known)), key=lambda n: waits[n])
    counted = f", counted in {len(known)} of {int((until - since) / MINUTE)} minutes"
    longest = span(timedelta(seconds=waits[worst])) if waits[worst] >= 1 else "under a second"
    return (
        f"The last {hours}{counted}: the longest wait was {longest}, at {known[worst].minute:%H:%M} UTC;"
        f" at most {max(depths):,} waited."
    )
