"""`manage.py load_rates FILE|-`: exchange rates of the ECB, and then the prices that waited for them."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from pricing import ecb, holds, rates


class Command(BaseCommand):
    help = (
        "Load the ECB's euro reference rates (eurofxref.csv or eurofxref-hist.csv, zipped or not); again is harmless."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="The file, or - for standard input.")

    def handle(self, *, file: str, **_: Any) -> None:
        now = timezone.now()
        try:
            content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
            published = ecb.read(content, today=now.date())
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from None
        except ecb.RatesError as error:
            raise CommandError(f"{file}: {error} Nothing was loaded.") from None
        loaded = rates.store(published, source="ECB")
        days = {rate.day for rate in published}
        self.stdout.write(
            f"{len(days)} days, {min(days)} to {max(days)}; rates added: {loaded.added}, "
            f"corrected: {loaded.corrected}, known already: {loaded.known}"
        )
        self.stdout.write(f"held prices released: {holds.release_convertible(now=now)}")
