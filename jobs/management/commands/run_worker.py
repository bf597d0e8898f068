import sys
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.gauges.reporter import tell_counts
from jobs.subscriptions import load_routes
from jobs.supervisor import Heartbeat, Supervisor
from jobs.worker import Worker, drain


class Command(BaseCommand):
    help = "Handle deliveries until told to stop (SIGTERM, Ctrl-C). Run as many of these as you like, on any host."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("subscriptions", nargs="*", help="only these (default: all)")
        parser.add_argument("--until-empty", action="store_true", help="stop when nothing is available any more")
        parser.add_argument("--unsupervised", action="store_true", help="one process, which something else restarts")
        parser.add_argument("--heartbeat-fd", type=int, help=SUPPRESS)

    def handle(
        self,
        *,
        subscriptions: list[str],
        until_empty: bool,
        unsupervised: bool,
        heartbeat_fd: int | None,
        **_: Any,
    ) -> None:
        unknown = sorted(set(subscriptions) - set(load_routes()))
        if unknown:
            raise CommandError(f"No such subscription: {', '.join(unknown)}. There are: {', '.join(load_routes())}.")
        if until_empty:
            self.stdout.write(f"{drain(subscriptions or None, seconds=24 * 3600)} deliveries settled")
            tell_counts()
        elif unsupervised or heartbeat_fd is not None:
            sys.exit(Worker(subscriptions or None, Heartbeat(heartbeat_fd)).run())
        else:
            sys.exit(Supervisor([sys.executable, *sys.argv]).run())
