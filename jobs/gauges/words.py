"""A subscription's state in one word and a sentence, and figures as people read them. Pure; imports no Django."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from jobs.gauges.figures import GROWING, Partition, Subscription
from jobs.words import span


class Level(IntEnum):
    """Also the exit code of `manage.py status`."""

    FINE = 0
    WARN = 1
    PAGE = 2


@dataclass(frozen=True)
class State:
    level: Level
    word: str


def state(subscription: Subscription, *, warn_share: float, page_share: float) -> State:
    """By its worst partition: the first of these that is so."""
    if subscription.paused_at:
        return State(Level.WARN, "paused")
    level = level_of(subscription.worst, subscription.promise, warn_share=warn_share, page_share=page_share)
    if level is Level.PAGE:
        return State(level, "late")
    if level is Level.WARN:
        return State(level, "behind")
    if subscription.worst.is_cycling and subscription.worst.waiting > timedelta(seconds=30):
        return State(Level.FINE, "retrying")
    return State(Level.FINE, "working" if subscription.depth else "idle")


def level_of(partition: Partition, promise: timedelta, *, warn_share: float, page_share: float) -> Level:
    if partition.waiting >= promise * page_share:
        return Level.PAGE
    return Level.WARN if partition.waiting >= promise * warn_share else Level.FINE


def drains(time: timedelta) -> str:
    if time == GROWING:
        return "growing"
    return span(time) if time else "empty"


def seconds(value: float | None) -> str:
    """“340 ms”, “2.1 s”, “4 min 10 s”; a dash where there is nothing to measure."""
    if value is None:
        return "–"
    return f"{value:.1f} s" if 1 <= value < 10 else span(timedelta(seconds=value))


def rate(per_minute: float) -> str:
    return f"{per_minute:,.0f}" if per_minute >= 10 or per_minute == 0 else f"{per_minute:.1f}"
