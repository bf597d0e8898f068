"""Runs a worker whose clock is off by some seconds: `python -m tests.processes.shifted 3600 strict`.

The clock is injected into Python rather than faked under it: the monotonic clock, by which waits end, is left alone.
"""

import sys
import time
from datetime import datetime, timedelta

import django
from django.utils import timezone


def shift(seconds: float) -> None:
    real_time, real_time_ns, real_now = time.time, time.time_ns, timezone.now

    def now() -> datetime:
        return real_now() + timedelta(seconds=seconds)

    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: real_time_ns() + int(seconds * 1e9)
    timezone.now = now


if __name__ == "__main__":
    offset, *subscriptions = sys.argv[1:]
    shift(float(offset))
    django.setup()
    from jobs.worker import Worker

    sys.exit(Worker(subscriptions).run())
