"""What a judge is, and those that the product adds: declared in the module that settings.ALARM_JUDGES names, as routes
are. jobs knows no purchase; what it says about one, and where to look, comes from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module

from django.conf import settings

from jobs.alarms.rules import Condition


@dataclass(frozen=True)
class Judge:
    """`look`: what is wrong now. Of the product's: `runbook`: the page in docs/runbooks/ where each
    alarm has its paragraph; `page(subject)`: the
    address of what an incident is about."""

    alarms: tuple[str, ...]
    look: Callable[[datetime], Iterable[Condition]]
    runbook: str = ""
    page: Callable[[str], str] | None = None


@cache
def product_judges() -> tuple[Judge, ...]:
    declared: tuple[Judge, ...] = tuple(import_module(settings.ALARM_JUDGES).JUDGES)
    return declared


def product_judge_of(alarm: str) -> Judge | None:
    return next((judge for judge in product_judges() if alarm in judge.alarms), None)
