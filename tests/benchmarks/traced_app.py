"""An app that, if TRACED says so, makes the code as it would be without a word about tracing."""

import os
from typing import Any

from django.apps import AppConfig

PLANTED = (
    ("jobs.apply.Application", "_in_one_transaction", "tracing.process(self.route.name, messages),", ""),
    ("jobs.outbox", "publish", "with tracing.send(messages) as trace:", "for trace in [{}]:"),
)


class Patch:
    """As much of pytest's as planting needs."""

    setattr = staticmethod(setattr)


class Traced(AppConfig):
    name = "tests.benchmarks.traced_app"
    path = "."

    def ready(self) -> None:
        if os.environ["TRACED"] != "absent":
            return
        from jobs import apply, outbox
        from tests.model.planting import in_source

        owners: dict[str, Any] = {"jobs.apply.Application": apply.Application, "jobs.outbox": outbox}
        for owner, name, old, new in PLANTED:
            in_source(owners[owner], name, old, new)(Patch())  # type: ignore[arg-type]
