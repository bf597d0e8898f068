"""What the terminal shows while prices travel: a live table at a terminal, plain lines elsewhere. Imports no Django.

Guarantee: `show` may be called as often as one likes and prints each price and mail once. Called by orchestra.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from winecellar.demo.mail_log import MailTaken
from winecellar.demo.tally import PriceTaken, Receipt, Totals

# Lines above the live part that should stay in sight, and those of its own titles and edges.
HEAD_LINES, FRAME_LINES = 10, 8
FEWEST_PRICES, FEWEST_MAILS = 4, 3


@dataclass(frozen=True)
class Line:
    """One thing that happened, in columns."""

    at: datetime
    what: str
    who: str
    figures: str
    tone: str = ""


@dataclass(frozen=True)
class Columns:
    """`what_share` is how many tenths of the free width the first column gets."""

    what: str
    what_share: int
    who: str
    figures: str
    figures_width: int


PRICE_COLUMNS = Columns("wine", 6, "merchant", "old → new", 32)
MAIL_COLUMNS = Columns("mail", 7, "to", "after the 202", 13)


class Names:
    """Turns ids into what people read."""

    def __init__(self, wines: Mapping[str, str], merchants: Mapping[str, str]) -> None:
        self._wines, self._merchants = wines, merchants

    def lines(self, receipt: Receipt) -> list[Line]:
        """A line for each price; one for a whole nightly refresh."""
        merchant = self._merchants[receipt.merchant_id]
        if receipt.nightly:
            changed = sum(price.event_id is not None for price in receipt.prices)
            figures = f"{len(receipt.prices)} prices, {changed} changed"
            return [Line(receipt.answered_at, "nightly refresh", merchant, figures, "bold")]
        return [
            Line(receipt.answered_at, self._wines[price.wine_id], merchant, _figures(price), _tone(price))
            for price in receipt.prices
        ]


def mail_line(mail: MailTaken, accepted_at: datetime | None) -> Line:
    """`accepted_at`: when the 202 of the price it is about had come; None for one that answers no price of ours."""
    if accepted_at is None:
        took = "first check"
    else:
        took = f"{max((mail.received_at - accepted_at).total_seconds(), 0) * 1000:,.0f} ms"
    return Line(mail.received_at, mail.subject, mail.to, took)


class Screen(Protocol):
    def show(self, prices: Sequence[Line], mails: Sequence[Line], totals: Totals, mail_count: int) -> None: ...

    def close(self) -> None: ...


class PlainScreen:
    """A line for each price and mail, for a file or a pipe."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def show(self, prices: Sequence[Line], mails: Sequence[Line], totals: Totals, mail_count: int) -> None:
        kinds = [(line, "price") for line in prices] + [(line, "mail") for line in mails]
        for line, kind in sorted(kinds, key=lambda pair: pair[0].at):
            if kind == "price":
                self._say(f"{line.at:%H:%M:%S.%f}"[:-3] + f"  price  {line.what} · {line.who} · {line.figures}")
            else:
                self._say(f"{line.at:%H:%M:%S.%f}"[:-3] + f"  MAIL   {line.what} → {line.who} · {line.figures}")

    def close(self) -> None:
        """Nothing to end."""


class LiveScreen:
    """Two tables that move: prices going in, alerts going out; beneath them the totals."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._prices: deque[Line] = deque(maxlen=100)
        self._mails: deque[Line] = deque(maxlen=100)
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()

    def show(self, prices: Sequence[Line], mails: Sequence[Line], totals: Totals, mail_count: int) -> None:
        self._prices.extend(prices)
        self._mails.extend(mails)
        room = self._console.height - HEAD_LINES - FRAME_LINES
        mail_rows = max(room * 2 // 5, FEWEST_MAILS)
        price_rows = max(room - mail_rows, FEWEST_PRICES)
        self._live.update(
            Group(
                _table("Prices going in", PRICE_COLUMNS, self._prices, price_rows),
                "",
                _table("Alerts going out", MAIL_COLUMNS, self._mails, mail_rows),
                "",
                _totals(totals, mail_count),
            ),
            refresh=True,
        )

    def close(self) -> None:
        self._live.stop()


def open_screen(console: Console, say: Callable[[str], None]) -> Screen:
    return LiveScreen(console) if console.is_terminal else PlainScreen(say)


def _table(title: str, columns: Columns, lines: deque[Line], rows: int) -> Table:
    """The last `rows` lines; empty rows below, so that nothing jumps while it fills."""
    table = Table(title=title, title_justify="left", title_style="bold", expand=True, box=None, header_style="dim")
    table.add_column("UTC", style="dim", no_wrap=True, width=8)
    table.add_column(columns.what, no_wrap=True, ratio=columns.what_share)
    table.add_column(columns.who, no_wrap=True, ratio=10 - columns.what_share)
    table.add_column(columns.figures, no_wrap=True, justify="right", width=columns.figures_width)
    last = list(lines)[-rows:]
    for line in last:
        table.add_row(f"{line.at:%H:%M:%S}", Text(line.what), Text(line.who), Text(line.figures, line.tone))
    for _ in range(rows - len(last)):
        table.add_row("", "", "", "")
    return table


def _totals(totals: Totals, mail_count: int) -> Text:
    return Text(
        f"{totals.sent:,} prices sent · {totals.accepted:,} accepted · {totals.events:,} changes · "
        f"{mail_count:,} mails · {totals.duplicates} retries recognised · Ctrl-C stops",
        style="dim",
        no_wrap=True,
        overflow="ellipsis",
    )


def _figures(price: PriceTaken) -> str:
    if price.reason == "held":
        return f"${price.new:,.2f} held for a person"
    if price.event_id is None:
        return f"${price.new:,.2f} as before"
    percent = (price.new - price.old) / price.old * 100
    return f"${price.old:,.2f} → ${price.new:,.2f} {percent:+.1f} %"


def _tone(price: PriceTaken) -> str:
    if price.event_id is None:
        return "dim"
    return "green" if price.new < price.old else ""
