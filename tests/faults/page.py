"""The table of crash points in docs/chaos.md: how many each handler, command and operator's action has.

`CRASH_POINTS=write` writes what a sweep finds; otherwise the page is held to it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "chaos.md"
BEGIN, END = "<!-- crash points: written by tests/faults -->", "<!-- end of crash points -->"
LINE = re.compile(r"^\| `([^`]+)` \| (\d+) \|$", re.MULTILINE)


def published() -> dict[str, int]:
    text = PAGE.read_text()
    return {name: int(points) for name, points in LINE.findall(text[text.index(BEGIN) : text.index(END)])}


def hold(name: str, points: int) -> None:
    """The page says so; or does from now on."""
    told = published()
    if os.environ.get("CRASH_POINTS") == "write":
        _write({**told, name: points})
    else:
        assert told.get(name) == points, (
            f"docs/chaos.md says that {name} has {told.get(name, 'no')} crash points, and it has {points}: "
            "run tests/faults with CRASH_POINTS=write"
        )


def _write(found: dict[str, int]) -> None:
    text = PAGE.read_text()
    lines = [f"| `{name}` | {points} |" for name, points in sorted(found.items())]
    ways = "died before it, died after it (which is before the next), and its answer lost"
    total = f"{len(found)} writers, {sum(found.values())} points: {ways}."
    table = "\n".join([BEGIN, "", total, "", "| what | points |", "| --- | ---: |", *lines, "", END])
    PAGE.write_text(text[: text.index(BEGIN)] + table + text[text.index(END) + len(END) :])
