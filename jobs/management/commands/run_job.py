import sys
from argparse import SUPPRESS, ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs import loop
from jobs.schedule import control, store
from jobs.schedule.declared import Job, load_schedule
from jobs.schedule.perform import Ending, perform
from jobs.schedule.run import Run
from jobs.words import utc


class Command(BaseCommand):
    help = "Run a scheduled job by hand, now or for slots that have passed, under the same lock and into the same rows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--for", dest="slot", help="its slots of a day, or one slot: 2026-03-14, 2026-03-14T02:00Z")
        parser.add_argument("--from", dest="first", help="the first of several days or slots ...")
        parser.add_argument("--to", dest="last", help="... and the last")
        parser.add_argument("--claimed", help=SUPPRESS)

    def handle(self, *, name: str, claimed: str | None, **when: str | None) -> None:
        jobs = load_schedule()
        if name not in jobs:
            raise CommandError(f"No such job: {name}. There are: {', '.join(jobs)}.")
        if claimed:
            sys.exit(_perform_claimed(jobs[name], *map(int, claimed.split(":"))))
        try:
            slots = control.slots_asked_for(jobs[name], when["slot"], when["first"], when["last"], now=store.now())
            endings = self._by_hand(jobs[name], slots)
        except (ValueError, control.BusyError) as error:
            raise CommandError(str(error)) from None
        if any(ending is not Ending.RAN for ending in endings):
            raise CommandError("Not all of it ran. The reasons are with the runs in the admin, and in the log.")

    def _by_hand(self, job: Job, slots: list[datetime]) -> list[Ending]:
        endings = []
        for slot, ending in control.run_by_hand(
            job, slots, owner=loop.process_name(), by="command", tell=self._tell, stopped_by=loop.stopped_by_signal
        ):
            self.stdout.write(f"{job.name} of {utc(slot)}: {ending.value}")
            endings.append(ending)
        return endings

    def _tell(self, done: int, total: int | None, counts: dict[str, Any]) -> None:
        facts = ", ".join(f"{name} {value}" for name, value in counts.items())
        self.stderr.write(f"{done:,}{f' of {total:,}' if total is not None else ''}{f' ({facts})' if facts else ''}")


def _perform_claimed(job: Job, run_id: int, token: int) -> int:
    claimed = store.claimed(run_id, token)
    if claimed is None:
        return 0  # whoever has its lock now has written what became of it
    run = Run(job, claimed)
    with loop.stopped_by_signal(run):
        perform(job, run, may_exit=True)
    return 0
