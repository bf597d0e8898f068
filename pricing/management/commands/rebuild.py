from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from pricing import analytics, rebuild, search_index

HISTORY = "price-history"
OTHERS = {"analytics-rollup": analytics.rebuild, "search-index": search_index.rebuild}


class Command(BaseCommand):
    help = "Make a projection again, while the system runs: the history from the message log, the others from the rows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("projection", choices=[HISTORY, *OTHERS])
        parser.add_argument("--wine", action="append", help="only this wine (may be given several times)")
        parser.add_argument("--dry-run", action="store_true", help="price-history: only say what would change")

    def handle(self, *, projection: str, wine: list[str] | None, dry_run: bool, **_: Any) -> None:
        if projection == HISTORY:
            self._history(wine, dry_run=dry_run)
            return
        rows = OTHERS[projection](wine, progress=self._progress)
        self.stdout.write(self.style.SUCCESS(f"rebuilt: {rows} rows"))

    def _history(self, wine: list[str] | None, *, dry_run: bool) -> None:
        with rebuild.difference(wines=wine) as found:
            self.stdout.write(
                f"from the log: {found.derived} rows; missing: {found.missing}, wrong: {found.wrong}, "
                f"surplus: {found.surplus}; not from the log, kept: {found.outside}"
            )
            if dry_run:
                self.stdout.write("Nothing was changed.")
            elif not found.any:
                self.stdout.write("The history is what the log says; nothing to do.")
            else:
                rebuild.replace(progress=self._progress)
                self.stdout.write(self.style.SUCCESS("rebuilt"))

    def _progress(self, done: int, wines: int) -> None:
        self.stderr.write(f"{done} of {wines} wines")
