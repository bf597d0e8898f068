"""What a bounded run came to, in words. Pure: figures in, lines out. Called by orchestra.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from winecellar.demo.oracle import DueMail
from winecellar.demo.reckoning import Reckoning, percentile
from winecellar.demo.tally import PriceTaken, Totals


@dataclass(frozen=True)
class Figures:
    """`latencies` are milliseconds, ascending. `acked`, by subscription, counts rows of the ledger."""

    seconds: float
    seed: int
    totals: Totals
    acked: Mapping[str, int]
    mails: int
    latencies: Sequence[float]
    still_waiting: int
    dead_letters: Sequence[str]
    complaints: Sequence[str]


def figures_in_words(figures: Figures) -> list[str]:
    """A line for each figure of the run."""
    totals = figures.totals
    acked = ", ".join(f"{name} {count:,}" for name, count in figures.acked.items())
    lines = [
        f"In {figures.seconds:.0f} seconds (seed {figures.seed})",
        _row("prices sent", totals.sent, f"in {totals.requests:,} requests"),
        _row("accepted", totals.accepted, f"{totals.unchanged:,} of them confirmed a price, {totals.held} held"),
        _row("events", totals.events, "prices that changed, each announced once"),
        _row("deliveries acked", sum(figures.acked.values()), acked),
        _row("emails", figures.mails, ""),
        _row("duplicates", totals.duplicates, f"of {totals.retries} requests sent twice on purpose"),
    ]
    if figures.latencies:
        lines.append(_latency_row(figures.latencies))
    if totals.waits or totals.lost_answers:
        lines.append(_row("asked to wait", totals.waits, f"and {totals.lost_answers} answers lost; each sent again"))
    return lines


def totals_in_words(totals: Totals, mails: int) -> str:
    """One line, for a run that somebody ended."""
    return f"Prices accepted: {totals.accepted:,} · changes announced: {totals.events:,} · mails sent: {mails:,}"


def verdict_in_words(
    figures: Figures,
    reckoning: Reckoning,
    owners: Mapping[int, str],
    accepted: Mapping[str, tuple[PriceTaken, datetime]],
) -> tuple[bool, list[str]]:
    """Whether all was well, and if not, a line for everything that was not."""
    wrong = [f"Due and not arrived: {_case(mail, owners, accepted)}" for mail in reckoning.missing]
    wrong += [f"Arrived and not due: {_case(mail, owners, accepted)}" for mail in reckoning.unexpected]
    wrong += [f"Arrived twice: {_case(mail, owners, accepted)}" for mail in reckoning.mailed_twice]
    wrong += [f"Acknowledged with a 202 and not in the message log: {event_id}" for event_id in reckoning.not_in_log]
    wrong += [f"Dead letter: {line}" for line in figures.dead_letters]
    wrong += [f"Refused by the feed: {complaint}" for complaint in figures.complaints]
    totals = figures.totals
    if totals.duplicates < totals.retries:
        wrong.append(f"{totals.retries - totals.duplicates} retries were not recognised as duplicates.")
    unanswered = totals.sent - totals.accepted - totals.refused
    if unanswered or not totals.sent:
        wrong.append(f"{totals.sent} prices were sent, and {unanswered} of them never answered.")
    if figures.still_waiting:
        wrong.append(f"{figures.still_waiting} deliveries were still waiting at the end.")
    if wrong:
        return False, wrong
    due = len(reckoning.due)
    said = f"Every alert that was due arrived ({due} of {due})." if due else "No alert was due."
    if reckoning.superseded:
        said += f" Cases in which a newer price had come before anybody looked: {reckoning.superseded}."
    return True, [said]


def _row(name: str, count: int, explanation: str) -> str:
    return f"  {name:<18}{count:>7,}" + (f"   {explanation}" if explanation else "")


def _latency_row(ascending: Sequence[float]) -> str:
    p50, p99, slowest = percentile(ascending, 0.50), percentile(ascending, 0.99), ascending[-1]
    said = f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms, slowest {slowest:,.0f} ms"
    return f"  {'202 to mail':<18}    {said}"


def _case(mail: DueMail, owners: Mapping[int, str], accepted: Mapping[str, tuple[PriceTaken, datetime]]) -> str:
    owner = owners.get(mail.alert_id, f"alert {mail.alert_id}")
    found = accepted.get(mail.event_id)
    if found is None:
        return f"{owner} (alert {mail.alert_id}), by {mail.event_id}"
    price, at = found
    return (
        f"{owner} (alert {mail.alert_id}), by {mail.event_id}: "
        f"${price.new:,.2f} from {price.merchant_id}, accepted {at:%H:%M:%S.%f} UTC"
    )
