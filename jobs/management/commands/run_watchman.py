from typing import Any

import structlog
from django.core.management.base import BaseCommand

from jobs import loop
from jobs.alarms.watchman import Watchman
from jobs.schedule import store

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Judge every alarm until told to stop: jobs, schedulers, dead letters. Best not on the scheduler's host."

    def handle(self, **_: Any) -> None:
        stop = loop.StopSignal()
        watchman = Watchman(owner=loop.process_name())
        log.info("watchman.started")
        loop.run(lambda: watchman.step(store.now()), stop, on_error=watchman.failed)
        watchman.close()
