import json
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from jobs.alarms import evaluation
from jobs.gauges import screen
from jobs.gauges.reading import read
from jobs.gauges.words import Level
from jobs.schedule import store

CLEAR = "\x1b[2J\x1b[H"


class Command(BaseCommand):
    help = "Say how everything stands. Exit code 0: fine, 1: something warns, 2: something pages; incidents or not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--watch", action="store_true", help="again every few seconds, until Ctrl-C")
        parser.add_argument("--json", action="store_true", help="for scripts: one document, or one a line with --watch")

    def handle(self, *, watch: bool, json: bool, **_: Any) -> None:
        try:
            while True:
                level = self._show(clear=watch and not json, as_json=json)
                if not watch:
                    sys.exit(level)
                time.sleep(settings.STATUS_WATCH_INTERVAL.total_seconds())
        except KeyboardInterrupt:
            return

    def _show(self, *, clear: bool, as_json: bool) -> Level:
        now = store.now()
        reading, (conditions, _) = read(now), evaluation.look(now)
        level = max((Level[condition.severity.name] for condition in conditions), default=Level.FINE)
        if as_json:
            self.stdout.write(json.dumps(screen.data(reading, conditions, level)))
            return level
        shares = {"warn_share": settings.ALARM_WARN_SHARE, "page_share": settings.ALARM_PAGE_SHARE}
        text = "\n".join(screen.lines(reading, conditions, **shares))
        self.stdout.write((CLEAR if clear else "") + text)
        return level
