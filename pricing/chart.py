"""A price chart as geometry: the numbers that an inline SVG needs, nothing else. Pure; imports no Django.

pygal 3.1 was considered: its inline styles are forbidden by our content security policy, and cannot follow dark mode.
x is in per cent of the plot's width, so that one drawing fits a phone and a desk; y is in CSS pixels. The step line
alone is drawn in a box of 1000 units that the browser stretches, with strokes that do not stretch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from itertools import groupby

from pricing.timeline import Step

WIDTH = 1000  # units of the stretched box
HEIGHT = 220  # pixels of the plot; room for the dates lies below it
HEADROOM = Decimal("0.16")  # of the range of prices, above and below: labels stand there
GRID_LINES = 5
MOST_DATES = 4  # under the line: as many labels as a phone has room for
CLEARANCE = 15  # pixels between two labels in one place
EDGE = 22  # per cent from an end within which a label is aligned to that end: half of one on a phone


@dataclass(frozen=True, slots=True)
class Mark:
    """A point worth naming: where it is, what it stands for, and which end of its label is at x."""

    x: float
    y: float
    value: Decimal
    anchor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PriceLine:
    y: float
    value: Decimal


@dataclass(frozen=True, slots=True)
class TargetLine:
    """The dashed line; its label stands at the end where the line of prices is farther away."""

    y: float
    value: Decimal
    x: int
    anchor: str


@dataclass(frozen=True, slots=True)
class DateTick:
    x: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Chart:
    """All that a template needs. `high` is None when every price is the same; `target` when it lies off the chart.

    `now` is None, and the line ends, where nobody offers the wine any more; where nobody did, the line has a gap.
    """

    line: str
    grid: list[PriceLine]
    dates: list[DateTick]
    now: Mark | None
    low: Mark
    high: Mark | None
    target: TargetLine | None
    width: int = WIDTH
    height: int = HEIGHT


def draw(steps: Sequence[Step], *, since: datetime, until: datetime, target: Decimal | None = None) -> Chart:
    """Draw at least one step between two times; `target` is dashed where it fits within half and double the prices."""
    low, high = min(steps, key=_price), max(steps, key=_price)
    if target is not None and not low.price_usd / 2 <= target <= high.price_usd * 2:
        target = None
    scale = _Scale.around([low.price_usd, high.price_usd, *([target] if target else [])], since, until)
    last, now = steps[-1], None
    if last.until is None:
        now = Mark(100, scale.y(last.price_usd), last.price_usd, "start", last.at)
    return Chart(
        line="".join(_step_path(stretch, scale) for stretch in _stretches(steps)),
        grid=[tick for tick in scale.grid() if now is None or abs(tick.y - now.y) >= CLEARANCE],
        dates=_months(scale, since, until),
        now=now,
        low=scale.mark(low),
        high=None if high.price_usd == low.price_usd else scale.mark(high),
        target=None if target is None else _target_line(target, scale, steps),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    bottom: Decimal
    top: Decimal
    since: datetime
    until: datetime

    @classmethod
    def around(cls, prices: list[Decimal], since: datetime, until: datetime) -> "_Scale":
        low, high = min(prices), max(prices)
        margin = (high - low) * HEADROOM or high / 10
        return cls(max(low - margin, Decimal(0)), high + margin, since, until)

    def x(self, at: datetime) -> float:
        return round((at - self.since) / (self.until - self.since) * 100, 2)

    def y(self, price: Decimal) -> float:
        return round(float((self.top - price) / (self.top - self.bottom)) * HEIGHT, 1)

    def mark(self, step: Step) -> Mark:
        x = self.x(step.at)
        anchor = "start" if x < EDGE else "end" if x > 100 - EDGE else "middle"
        return Mark(x, self.y(step.price_usd), step.price_usd, anchor, step.at)

    def grid(self) -> list[PriceLine]:
        unit = _round_unit((self.top - self.bottom) / GRID_LINES)
        value = (self.bottom / unit).to_integral_value(ROUND_CEILING) * unit
        lines = []
        while value <= self.top:
            lines.append(PriceLine(self.y(value), value))
            value += unit
        return lines


def _price(step: Step) -> Decimal:
    return step.price_usd


def _round_unit(rough: Decimal) -> Decimal:
    """The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `rough`; never below a cent."""
    power = Decimal(10) ** rough.adjusted()
    factors = (Decimal(factor) for factor in ("1", "2", "2.5", "5", "10"))
    return max(next(factor * power for factor in factors if factor * power >= rough), Decimal("0.01"))


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most four points for each unit of width, the highest and lowest among them: more cannot be seen."""
    kept: list[tuple[float, float]] = []
    for _, group in groupby(points, key=lambda point: int(point[0])):
        column = list(group)
        if len(column) > 4:
            wanted = {0, len(column) - 1}
            wanted.add(min(range(len(column)), key=lambda i: column[i][1]))
            wanted.add(max(range(len(column)), key=lambda i: column[i][1]))
            column = [column[i] for i in sorted(wanted)]
        kept += column
    return kept


def _stretches(steps: Sequence[Step]) -> list[list[Step]]:
    """The steps between two gaps."""
    stretches: list[list[Step]] = [[]]
    for step in steps:
        if stretches[-1] and stretches[-1][-1].until is not None:
            stretches.append([])
        stretches[-1].append(step)
    return stretches


def _step_path(stretch: list[Step], scale: _Scale) -> str:
    (x, y), *rest = _thinned([(scale.x(step.at) * WIDTH / 100, scale.y(step.price_usd)) for step in stretch])
    end = WIDTH if stretch[-1].until is None else scale.x(stretch[-1].until) * WIDTH / 100
    return f"M{x:g} {y:g}" + "".join(f"H{x:g}V{y:g}" for x, y in rest) + f"H{end:g}"


def _target_line(target: Decimal, scale: _Scale, steps: Sequence[Step]) -> TargetLine:
    quarter = (scale.until - scale.since) / 4
    left = _distance(target, [step for step in steps if step.at <= scale.since + quarter])
    right = _distance(target, [step for step in steps if step.at >= scale.until - quarter] or [steps[-1]])
    at_left = left >= right
    return TargetLine(scale.y(target), target, 0 if at_left else 100, "start" if at_left else "end")


def _distance(target: Decimal, steps: Sequence[Step]) -> Decimal:
    return min((abs(step.price_usd - target) for step in steps), default=Decimal("Infinity"))


def _months(scale: _Scale, since: datetime, until: datetime) -> list[DateTick]:
    """The first of each month, or of every so many, but for those whose label would hang over an end."""
    firsts = []
    at = since.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while at < until:
        at = (at + timedelta(days=32)).replace(day=1)
        if 5 <= scale.x(at) <= 95:
            firsts.append(DateTick(scale.x(at), at))
    return firsts[:: -(-len(firsts) // MOST_DATES) or 1]
