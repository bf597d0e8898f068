"""What a redrive would meet: the code as it is now looks at a whole selection, before anybody decides. Changes nothing.

Called by the confirmation page, by `manage.py dead_letters`, and by the redrive itself for each portion it sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from django.conf import settings

from jobs.dead_letters import store
from jobs.dead_letters.case_files import CannotError, Case, load_case_files
from jobs.dead_letters.fingerprint import normalised
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from jobs.errors import PermanentError
from jobs.messages import Message, NewMessage, dumps
from jobs.subscriptions import load_routes

NEVER_QUEUED = "it never was in the message log: re-adapt it"


@dataclass(frozen=True)
class Verdict:
    """About one letter: why it would fail, or "" and the body it would be sent with (None: its own)."""

    why_not: str = ""
    body: Mapping[str, Any] | None = None


@dataclass
class Reason:
    """One way to fail again: in words, how many would, and the first of them."""

    words: str
    count: int
    example: int


@dataclass
class Preflight:
    """What the present code says of a selection. `old`: their consumers' ledger may have forgotten them."""

    kind: str
    total: int = 0
    would_pass: int = 0
    reasons: dict[str, Reason] = field(default_factory=dict)
    in_ledger: int = 0
    superseded: int = 0
    old: int = 0
    subscriptions: Counter[str] = field(default_factory=Counter)

    @property
    def would_fail(self) -> int:
        return self.total - self.would_pass

    @property
    def because(self) -> list[Reason]:
        return sorted(self.reasons.values(), key=lambda reason: -reason.count)

    @property
    def in_words(self) -> str:
        if not self.total:
            return "None of these waits for a decision."
        text = f"{self.would_pass:,} of {self.total:,} would pass now"
        if self.would_fail:
            told = "; ".join(f"{reason.count:,}: {reason.words}" for reason in self.because[:5])
            text += f"; {self.would_fail:,} would fail again, because {told}"
        return text + "."

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "total": self.total,
            "would_pass": self.would_pass,
            "would_fail": self.would_fail,
            "because": [vars(reason) for reason in self.because],
            "in_ledger": self.in_ledger,
            "superseded": self.superseded,
            "older_than_the_ledger": self.old,
        }

    def add(self, case: Case, why_not: str) -> None:
        self.total += 1
        self.subscriptions[case.subscription] += 1
        if not why_not:
            self.would_pass += 1
            return
        reason = self.reasons.setdefault(normalised(why_not), Reason(why_not, 0, case.letter_id))
        reason.count += 1


def ledger_reaches(now: datetime) -> datetime:
    """What was published before this may have been applied and forgotten."""
    return now - settings.LEDGER_RETENTION


def look(selection: Selection, *, kind: Decision, now: datetime) -> Preflight:
    """Validate every letter of a selection that waits for a decision, up to DECISION_MOST of them."""
    found = Preflight(kind.value)
    for cases in _at_most(store.cases(selection), settings.DECISION_MOST):
        for case, verdict in zip(cases, judge(cases, kind=kind), strict=True):
            found.add(case, verdict.why_not)
        found.in_ledger += len(store.in_ledger(cases))
        found.superseded += len(load_case_files().superseded(cases))
        found.old += sum(case.published_at < ledger_reaches(now) for case in cases)
    return found


def _at_most(batches: Iterable[list[Case]], most: int) -> Iterable[list[Case]]:
    for batch in batches:
        if most <= 0:
            return
        yield list(islice(batch, most))
        most -= len(batch)


def judge(cases: Sequence[Case], *, kind: Decision) -> list[Verdict]:
    """What the code as it is now says of each letter, in their order."""
    if kind is Decision.READAPT:
        made = load_case_files().readapt(cases)
        return [_readapted(case, message) for case, message in zip(cases, made, strict=True)]
    return [Verdict(NEVER_QUEUED if case.message_id is None else _why_not(case, case.message)) for case in cases]


def _readapted(case: Case, made: NewMessage | CannotError) -> Verdict:
    if isinstance(made, CannotError):
        return Verdict(str(made))
    if case.message_id is None:  # what is made of it are messages of their own
        return Verdict()
    message = case.message._replace(body_text=dumps(made.body))
    return Verdict(_why_not(case, message), made.body)


def _why_not(case: Case, message: Message) -> str:
    route = load_routes().get(case.subscription)
    if route is None:
        return f"no code handles the subscription {case.subscription} any more"
    if message.type not in route.message_types:
        return f"{case.subscription} does not take {message.type} any more"
    if route.check is None:
        return ""
    try:
        route.check(message)
    except PermanentError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
