"""django-tasks-db: its one worker, looking every 0.1 s when idle (its default is 1 s). It has no bulk call."""

# ruff: noqa: E402 (Django is set up before its models are imported)

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "django_peers_settings"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the driver's loop is asyncio's, and nothing else runs in it
os.environ["BENCH_BACKEND"] = "tasks-db"

import django

django.setup()
import shape
from django.core.management import call_command
from django.db import connection, transaction
from django_peers_tasks import noop


class DjangoTasksDb:
    def setup(self) -> None:
        call_command("migrate", verbosity=0)

    def connect(self) -> None:
        connection.ensure_connection()

    def add_many(self, numbers: range) -> None:
        with transaction.atomic():
            for number in numbers:
                noop.enqueue(number)

    def add(self, number: int) -> None:
        noop.enqueue(number)

    def work(self) -> None:
        call_command("db_worker", interval=0.1, verbosity=0, startup_delay=False, reload=False)


shape.main(DjangoTasksDb())
