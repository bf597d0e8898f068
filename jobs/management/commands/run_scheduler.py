import sys
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import Error

from jobs import loop
from jobs.schedule import store
from jobs.schedule.children import Children
from jobs.schedule.declared import load_schedule
from jobs.schedule.scheduler import Scheduler

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Run the jobs of winecellar/schedule.py until told to stop. Run it on as many hosts as you like."

    def handle(self, **_: Any) -> None:
        stop = loop.StopSignal()
        children = Children([sys.executable, sys.argv[0]], at_once=settings.SCHEDULER_RUNS_AT_ONCE)
        scheduler = Scheduler(load_schedule(), children, owner=loop.process_name())
        opened = False

        def step() -> float:
            nonlocal opened
            if not opened:
                scheduler.open()
                opened = True
            return scheduler.step(store.now())

        loop.run(step, stop)
        try:
            children.stop()
            scheduler.close()
        except Error as error:  # the locks of what it ran will run out by themselves
            log.warning("scheduler.stopped_without_database", error=type(error).__name__)
