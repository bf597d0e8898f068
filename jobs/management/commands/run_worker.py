import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.subscriptions import load_routes
from jobs.worker import Worker, drain


class Command(BaseCommand):
    help = "Handle deliveries until told to stop (SIGTERM, Ctrl-C). Run as many of these as you like, on any host."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("subscriptions", nargs="*", help="only these (default: all)")
        parser.add_argument("--until-empty", action="store_true", help="stop when nothing is available any more")

    def handle(self, *, subscriptions: list[str], until_empty: bool, **_: Any) -> None:
        unknown = sorted(set(subscriptions) - set(load_routes()))
        if unknown:
            raise CommandError(f"No such subscription: {', '.join(unknown)}. There are: {', '.join(load_routes())}.")
        if until_empty:
            self.stdout.write(f"{drain(subscriptions or None, seconds=24 * 3600)} deliveries settled")
            return
        sys.exit(Worker(subscriptions or None).run())
