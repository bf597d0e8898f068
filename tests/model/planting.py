"""Planting a bug in the real code for one test: in a statement of queue.py, or in a function's own source."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from jobs import queue

Plant = Callable[[pytest.MonkeyPatch], None]


def edited(text: str, old: str, new: str) -> str:
    """Raises when there is nothing to edit: a mutation that changes nothing would prove nothing."""
    if old not in text:
        raise LookupError(f"not there any more: {old!r}")
    return text.replace(old, new)


def in_sql(old: str, new: str, *statements: str) -> Plant:
    """Replace text in these constants of queue.py."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for name in statements:
            patch.setattr(queue, name, edited(getattr(queue, name), old, new))

    return plant


CLAIMS = ("CLAIM_ORDERED", "CLAIM_UNORDERED", "CLAIM_ORDERED_PAST", "CLAIM_UNORDERED_PAST")
ACKS = ("ACK_RUN", "ACK_RUN_TOLD", "ACK_SOME")


def in_source(owner: Any, name: str, old: str, new: str) -> Plant:
    """Replace text in the source of a function or method, and put the function made of it in its place."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        function = getattr(owner, name)
        source = edited(textwrap.dedent(inspect.getsource(function)), old, new)
        flags = __future__.annotations.compiler_flag
        made: dict[str, Any] = {}
        exec(compile(source, f"<{name} with a bug>", "exec", flags), function.__globals__, made)
        patch.setattr(owner, name, made[name])

    return plant


def instead(owner: Any, name: str, value: Any) -> Plant:
    """Put something else in its place."""
    return lambda patch: patch.setattr(owner, name, value)
