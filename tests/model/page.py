"""Reads the table of docs/mutations.md, so that tests can hold it to the truth."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
NONE = "–"


class Line(NamedTuple):
    breaks: str
    steps: str
    scenario: str
    tests: list[str]


@cache
def lines() -> dict[str, Line]:
    """The table's lines by the name of the bug."""
    found: dict[str, Line] = {}
    for line in (ROOT / "docs" / "mutations.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in ("bug", "---"):
            name, breaks, steps, scenario, tests = cells
            if name in found:
                raise ValueError(f"twice in the table: {name}")
            found[name] = Line(breaks, steps, scenario.strip("`"), re.findall(r"`([^`]+)`", tests))
    return found
