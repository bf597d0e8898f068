from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from pricing.catalogues import files


class Command(BaseCommand):
    help = "Remove the bytes of old catalogue files, and the reports that are older still."

    def handle(self, **_: Any) -> None:
        without_bytes, reports = files.purge(now=timezone.now())
        self.stdout.write(f"files whose bytes were removed: {without_bytes}; reports removed: {reports}")
