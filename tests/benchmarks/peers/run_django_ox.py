"""django-ox: one worker process with eight threads, looking every 0.1 s when idle (its default is 1 s)."""

# ruff: noqa: E402 (Django is set up before its models are imported)

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "django_peers_settings"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the driver's loop is asyncio's, and nothing else runs in it
os.environ["BENCH_BACKEND"] = "ox"

import django

django.setup()
import shape
from django.core.management import call_command
from django.db import connection
from django_ox.bulk import enqueue_many
from django_peers_tasks import noop


class DjangoOx:
    def setup(self) -> None:
        call_command("migrate", verbosity=0)

    def connect(self) -> None:
        connection.ensure_connection()

    def add_many(self, numbers: range) -> None:
        enqueue_many(noop, [((number,), {}) for number in numbers])

    def add(self, number: int) -> None:
        noop.enqueue(number)

    def work(self) -> None:
        call_command("ox_worker", "--concurrency", "8", "--interval", "0.1", verbosity=0)


shape.main(DjangoOx())
