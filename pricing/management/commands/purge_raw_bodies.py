from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from pricing import raw_bodies


class Command(BaseCommand):
    help = "Remove the raw bodies of feed requests that are past their time."

    def handle(self, **_: Any) -> None:
        self.stdout.write(f"raw bodies removed: {raw_bodies.purge(now=timezone.now())}")
