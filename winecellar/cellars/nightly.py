"""The scheduled job `value-cellars`: a night as a run of the schedule. Declared in winecellar/schedule.py."""

from django.utils import timezone

from jobs.schedule.run import Run
from winecellar.cellars.valuation import value_cellars


def run(run: Run) -> None:
    """Value all cellars as of the run's slot; a run that is tried again goes on where the last one stopped."""
    value_cellars(slot=run.scheduled_for, fenced=run.fenced, progress=run.progress, now=timezone.now())
