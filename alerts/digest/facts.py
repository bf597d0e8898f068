"""What one person's week came to: chosen, kept as JSON with the digest, read again by the mail and the page. Pure.

Guarantee: money keeps its digits; what is kept reads back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Drop:
    """A watched wine whose best price fell."""

    wine_id: str
    name: str
    before: Decimal
    now: Decimal
    merchant: str

    @property
    def percent(self) -> Decimal:
        return (self.before - self.now) / self.before * 100


@dataclass(frozen=True, slots=True)
class Fired:
    """A mail that an alert sent."""

    alert_id: int
    name: str
    currency: str
    price: Decimal
    target: Decimal | None  # None: it waits for something else, such as a new low
    merchant: str


@dataclass(frozen=True, slots=True)
class Close:
    """An alert that waits, and how far its wine's best price is above its target."""

    alert_id: int
    name: str
    currency: str
    now: Decimal
    target: Decimal

    @property
    def percent(self) -> Decimal:
        return (self.now - self.target) / self.now * 100


class Worth(Protocol):
    """A cellar's worth as of this week's night and the one before, as the cellars tell it."""

    @property
    def currency(self) -> str: ...
    @property
    def value(self) -> Decimal: ...
    @property
    def before(self) -> Decimal | None: ...


@dataclass(frozen=True, slots=True)
class Cellar:
    currency: str
    value: Decimal
    before: Decimal | None

    @property
    def change(self) -> Decimal | None:
        return None if self.before is None else self.value - self.before


@dataclass(frozen=True, slots=True)
class Week:
    """Each list is the best few; `fired_count` and `drop_count` are of all."""

    drops: list[Drop] = field(default_factory=list)
    drop_count: int = 0
    fired: list[Fired] = field(default_factory=list)
    fired_count: int = 0
    close: list[Close] = field(default_factory=list)
    cellar: Cellar | None = None

    @property
    def is_news(self) -> bool:
        """What is close to its target is no news by itself: it may be so for a year."""
        return bool(self.drops or self.fired or (self.cellar and self.cellar.change))


def choose(
    *, drops: Iterable[Drop], fired: Sequence[Fired], close: Iterable[Close], worth: Worth | None, lines: int
) -> Week:
    """`fired` comes newest first; of the others those that fell most, or have least to fall, come first."""
    fell = sorted((drop for drop in drops if drop.now < drop.before), key=lambda d: (-d.percent, d.name, d.wine_id))
    waiting = sorted((each for each in close if each.now > each.target), key=lambda c: (c.percent, c.name, c.alert_id))
    return Week(
        drops=fell[:lines],
        drop_count=len(fell),
        fired=list(fired[:lines]),
        fired_count=len(fired),
        close=waiting[:lines],
        cellar=Cellar(worth.currency, worth.value, worth.before) if worth else None,
    )


def kept(week: Week) -> dict[str, Any]:
    """As JSON, its money as text."""
    return {name: _plain(value) for name, value in asdict(week).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def read(stored: dict[str, Any]) -> Week:
    money = ("before", "now", "price", "target", "value")

    def line(facts: dict[str, Any]) -> dict[str, Any]:
        return {n: Decimal(v) if n in money and v is not None else v for n, v in facts.items()}

    cellar = stored.get("cellar")
    return Week(
        drops=[Drop(**line(each)) for each in stored.get("drops", [])],
        drop_count=stored.get("drop_count", 0),
        fired=[Fired(**line(each)) for each in stored.get("fired", [])],
        fired_count=stored.get("fired_count", 0),
        close=[Close(**line(each)) for each in stored.get("close", [])],
        cellar=Cellar(**line(cellar)) if cellar else None,
    )
