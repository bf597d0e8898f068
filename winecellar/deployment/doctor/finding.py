"""What the doctor says: one line of what is so, one of what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"  # it works, and will not for ever, or not for everybody
    FAIL = "fail"  # a promise does not hold


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is a short name that stays, for whoever reads the JSON; `do` is empty where nothing is to be done."""

    check: str
    level: Level
    says: str
    do: str = ""

    def as_json(self) -> dict[str, str]:
        return {name: str(value) for name, value in asdict(self).items()}


def ok(check: str, says: str) -> Finding:
    return Finding(check, Level.OK, says)


def warn(check: str, says: str, do: str) -> Finding:
    return Finding(check, Level.WARN, says, do)


def fail(check: str, says: str, do: str) -> Finding:
    return Finding(check, Level.FAIL, says, do)


def exit_code(findings: Sequence[Finding]) -> int:
    """0: nothing to do. 1: something does not hold. 2: warnings alone."""
    levels = {finding.level for finding in findings}
    return 1 if Level.FAIL in levels else 2 if Level.WARN in levels else 0
