import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db import Error, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.database import sqlstate

LOCK_NOT_AVAILABLE = "55P03"


class Command(migrate.Command):
    """Django's, but a migration that waits for a lock gives up soon: whoever comes after it waits behind it."""

    def handle(self, *args: Any, **options: Any) -> None:
        limit = int(settings.MIGRATION_LOCK_LIMIT.total_seconds() * 1000)
        with patient_for(connections[options["database"]], limit):
            for left in reversed(range(settings.MIGRATION_LOCK_TRIES)):
                try:
                    super().handle(*args, **options)
                    return  # noqa: TRY300  (what follows is the next try)
                except OperationalError as error:
                    if sqlstate(error) != LOCK_NOT_AVAILABLE or not left:
                        raise
                    self.stderr.write(f"A table was in use for {limit} ms. Tried again soon, {left} more times.")
                    time.sleep(random.uniform(0.5, 1) * limit / 1000)  # noqa: S311


@contextmanager
def patient_for(connection: BaseDatabaseWrapper, milliseconds: int) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [str(milliseconds)])
    try:
        yield
    finally:
        with suppress(Error), connection.cursor() as cursor:  # a connection that broke has nothing to give back
            cursor.execute("RESET lock_timeout")
