"""`manage.py import_catalogue MERCHANT FILE`: take a merchant's catalogue file here and now (`-`: from stdin)."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from pricing.catalogues import inline
from pricing.catalogues.inline import CannotTakeError
from pricing.catalogues.options import Format
from pricing.contract import parse_time


class Command(BaseCommand):
    help = "Take a merchant's catalogue file: publish what differs from the last one, and report on every row."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("file", help="A path, or - for standard input.")
        parser.add_argument("--format", choices=[each.value for each in Format], help="Else it is found out.")
        parser.add_argument("--as-of", metavar="TIME", help="The time of its prices, such as 2030-05-17T02:00:00Z.")
        parser.add_argument("--dry-run", action="store_true", help="Only say what would differ.")
        parser.add_argument("--json", action="store_true", help="The report as JSON.")

    def handle(self, *, merchant_id: str, file: str, as_of: str | None, dry_run: bool, **options: Any) -> None:
        now = timezone.now()
        data: BinaryIO = sys.stdin.buffer
        try:
            when = parse_time(as_of) if as_of else now
            if file != "-":
                data = Path(file).open("rb")  # noqa: SIM115  (read to its end below)
        except (ValueError, OSError) as error:
            raise CommandError(str(error)) from None
        with data, tqdm(unit=" rows", disable=None, leave=False, file=self.stderr) as bar:
            try:
                told = inline.take(
                    merchant_id=merchant_id,
                    name=Path(file).name,
                    data=data,
                    format_=options["format"],
                    as_of=when,
                    dry_run=dry_run,
                    progress=lambda taken, rows: _show(bar, taken, rows),
                    now=now,
                )
            except CannotTakeError as error:
                raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(told.as_json, indent=2) if options["json"] else "\n".join(told.lines))
        if told.refused:
            raise CommandError("Nothing was taken.")


def _show(bar: Any, taken: int, rows: int | None) -> None:
    bar.total = rows
    bar.n = taken
    bar.refresh()
