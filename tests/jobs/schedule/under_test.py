"""Jobs for the schedule's own tests. What their handlers do, a test sets in `acts`; in processes, SCHEDULE_ACT does."""

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import connection

from jobs.schedule.declared import CatchUp, Job, Overlap
from jobs.schedule.run import Run

acts: dict[str, Callable[[Run], None]] = {}
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def work(run: Run) -> None:
    if run.job in acts:
        acts[run.job](run)
    elif act := os.environ.get("SCHEDULE_ACT"):
        in_a_process(run, act)
    else:
        write_chunk(run, 0)


def write_chunk(run: Run, chunk: int) -> None:
    """An effect: a row that says who wrote it."""
    with run.fenced(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO test_chunk (job, slot, token, chunk) VALUES (%s, %s, %s, %s)",
            [run.job, run.scheduled_for, run.claimed.token, chunk],
        )


def in_a_process(run: Run, act: str) -> None:
    match act:
        case "chunks":  # a long run that goes on from where an earlier attempt got to
            for chunk in range(_chunks_of(run), int(os.environ["SCHEDULE_CHUNKS"])):
                write_chunk(run, chunk)
                run.progress(chunk + 1)
                time.sleep(0.05)
        case "hang":
            write_chunk(run, 0)
            while True:
                time.sleep(1)
        case "stop-in-chunk":
            with run.fenced(), connection.cursor() as cursor:
                cursor.execute("INSERT INTO test_chunk VALUES (%s, %s, 0, 0)", [run.job, run.scheduled_for])
                print("(in a chunk)", flush=True)
                os.kill(os.getpid(), signal.SIGSTOP)
        case "exit" if run.attempt == 1:
            os._exit(3)
        case _:
            write_chunk(run, 0)


def _chunks_of(run: Run) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM test_chunk WHERE job = %s AND slot = %s", [run.job, run.scheduled_for])
        return int(cursor.fetchone()[0])


def job(name: str, cron: str = "0 * * * *", *, overlap: Overlap = Overlap.SKIP, catch_up: CatchUp | None = None) -> Job:
    return Job(
        name,
        cron,
        work,
        lock_ttl=timedelta(seconds=int(os.environ.get("SCHEDULE_TTL", "60"))),
        overlap=overlap,
        catch_up=catch_up or CatchUp.latest(),
        heartbeat=400 * DAY,
        time_limit=timedelta(seconds=int(os.environ.get("SCHEDULE_LIMIT", "3600"))),
    )


ALL = [
    job("hourly"),
    job("queued", overlap=Overlap.QUEUE),
    job("nightly", "0 2 * * *"),
    job("nightly-skip", "0 2 * * *", catch_up=CatchUp.skip()),
    job("nightly-each", "0 2 * * *", overlap=Overlap.QUEUE, catch_up=CatchUp.each(2)),
    job("minutely", "* * * * *"),
    job("yearly", "0 0 1 1 *"),  # its latest slot does not change while a test runs
]
_wanted = os.environ.get("SCHEDULE_JOBS")
SCHEDULE = [job for job in ALL if _wanted is None or job.name in _wanted.split()]
