"""The handlers of the jobs that look after the machinery itself. Each deletes in chunks, each chunk under the fence."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from jobs import catalog
from jobs.alarms import evaluation, incidents, notices
from jobs.gauges import store as gauges
from jobs.schedule import store
from jobs.schedule.run import Run

BATCH = 10_000


def in_chunks(run: Run, purge: Callable[[], int], *, of: str, before: int = 0) -> int:
    """Call `purge`, which deletes a batch and says how many went, until it finds none; how many in all."""
    total = 0
    while True:
        with run.fenced():
            count = purge()
        total += count
        run.progress(before + total, **{of: total})
        if not count:
            return total


def purge_ledger(run: Run) -> None:
    """Forget what was processed longer ago than anything is redelivered or redriven, and how it got there."""
    before = store.now() - settings.LEDGER_RETENTION
    rows = in_chunks(run, lambda: catalog.purge_ledger(before, batch=BATCH), of="ledger rows removed")
    past = in_chunks(run, lambda: catalog.purge_past_deliveries(before, batch=BATCH), of="retries removed", before=rows)
    run.progress(rows + past, **{"ledger rows removed": rows, "retries removed": past})


def purge_dead_letters(run: Run) -> None:
    """Remove dead letters past their time. Those that will go soon are an alarm, days before."""
    before = store.now() - settings.DEAD_LETTER_RETENTION
    in_chunks(run, lambda: catalog.purge_dead_letters(before, batch=BATCH), of="dead letters removed")


def keep_message_months(run: Run) -> None:
    """Make the message log's coming months; drop those past their time, but none that a delivery still needs."""
    with run.fenced():
        catalog.ensure_message_partitions()
    with run.fenced():
        dropped = catalog.drop_message_partitions(store.now() - settings.MESSAGE_RETENTION)
    run.progress(len(dropped), months_dropped=", ".join(dropped) or "none")


def purge_schedule_history(run: Run) -> None:
    """Remove old runs and closed incidents, and processes that ended without a word long ago."""
    before = store.now() - settings.SCHEDULE_RETENTION
    runs = in_chunks(run, lambda: store.purge_runs(before, batch=BATCH), of="runs removed")
    with run.fenced():
        closed = incidents.purge(before)
        processes = store.purge_processes(store.now() - 10 * settings.PROCESS_SILENT_AFTER)
    run.progress(runs + closed, **{"runs removed": runs, "incidents removed": closed, "processes removed": processes})


def purge_gauges(run: Run) -> None:
    """Forget minutes that no page draws and no alarm compares with any more."""
    before = store.now() - settings.GAUGE_RETENTION
    in_chunks(run, lambda: gauges.purge(before, batch=BATCH), of="minutes removed")


def evaluate_alarms(run: Run) -> None:
    """Look at every alarm, the watchman's own silence among them."""
    if not evaluation.evaluate(store.now()):
        raise RuntimeError("a judge failed; the log says which")
    notices.tell(store.now())
