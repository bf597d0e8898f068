"""Every act a person may take, in one table: its permission, its words, what it asks for, the service behind it.

Read by the admin and by `manage.py dead_letters`, so that both offer the same and do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.dead_letters import services
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from jobs.dead_letters.services import Done


@dataclass(frozen=True)
class Act:
    """`asks`: what it needs beside a reason. `redrives`: a preflight is due first."""

    name: str
    label: str
    meaning: str
    permission: str
    do: Callable[..., Done]
    asks: tuple[str, ...] = ()
    redrives: Decision | None = None
    open_only: bool = True

    def fits(self, decision: str) -> bool:
        """Whether a letter with this decision ("": none yet) can be dealt with so."""
        if self.name == "reopen":
            return decision in (Decision.DISCARD, Decision.SUPERSEDED, Decision.QUARANTINE)
        return not self.open_only or decision in ("", Decision.QUARANTINE)


def _redrive(kind: Decision) -> Callable[..., Done]:
    def do(*, selection: Selection, by: str, note: str, now: datetime, **given: Any) -> Done:
        return services.redrive(selection=selection, kind=kind, by=by, note=note, now=now, **given)

    return do


_PACE = ("told", "rate_per_second", "stop_share")
ACTS = {
    act.name: act
    for act in (
        Act(
            "redrive",
            "Redrive",
            "Offer them to their subscriptions again, as they are.",
            "redrive",
            _redrive(Decision.REDRIVE),
            _PACE,
            Decision.REDRIVE,
        ),
        Act(
            "readapt",
            "Re-adapt and redrive",
            "Read their raw bodies again with the adapter as it is now, and redrive what it makes of them.",
            "readapt",
            _redrive(Decision.READAPT),
            _PACE,
            Decision.READAPT,
        ),
        Act("discard", "Discard", "Never to be processed. They stay here for the record.", "discard", services.discard),
        Act(
            "superseded",
            "Discard as superseded",
            "Discard those of which something newer has been applied since; leave the others.",
            "discard",
            services.discard_superseded,
        ),
        Act(
            "quarantine",
            "Quarantine",
            "Put aside until a date, for somebody who is not here. Until then they page nobody.",
            "quarantine",
            services.quarantine,
            ("wake_at",),
        ),
        Act("assign", "Assign", "Say who is to decide.", "assign", services.assign, ("to",)),
        Act(
            "comment",
            "Comment",
            "Write something into their case files.",
            "comment",
            services.comment,
            open_only=False,
        ),
        Act(
            "reopen",
            "Reopen",
            "Take back a discard or a quarantine.",
            "discard",
            services.reopen,
            open_only=False,
        ),
    )
}
