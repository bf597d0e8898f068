"""Which migrations the code and the database do not have in common. Reads; asked by /readyz and the doctor."""

from __future__ import annotations

from dataclasses import dataclass

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader


@dataclass(frozen=True)
class Difference:
    """`missing`: of the code, not applied. `newer`: applied, and not known to the code. Each as `app.name`, sorted."""

    missing: list[str]
    newer: list[str]


def difference() -> Difference:
    """Not by the executor's plan: that believes that whatever an applied migration needs was applied before it."""
    loader = MigrationLoader(connection)
    ours = {app.label for app in apps.get_app_configs()}
    applied, known = set(loader.applied_migrations), set(loader.graph.nodes)
    return Difference(
        missing=sorted(f"{app}.{name}" for app, name in known - applied),
        newer=sorted(f"{app}.{name}" for app, name in applied - set(loader.disk_migrations) if app in ours),
    )
