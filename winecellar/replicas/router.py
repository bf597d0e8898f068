"""Django's database router: what pages read about wines, alerts and cellars may come from a replica, all else never.

Guarantee: every write, and who somebody is (accounts, sessions, second factors), is the primary's. Settings name it.
"""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

from winecellar.replicas.reading import current

# A session that was ended, or an account that was closed, must count at once; and the queue is read to be written.
REPLICATED = {"pricing", "alerts", "cellars"}


class ReplicaRouter:
    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        reading = current.get()
        if reading is None or model._meta.app_label not in REPLICATED:
            return DEFAULT_DB_ALIAS
        return reading.alias()

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        return True  # the same rows, wherever they were read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == DEFAULT_DB_ALIAS
