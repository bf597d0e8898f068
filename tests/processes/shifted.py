"""Runs a command whose clock is off by some seconds: `python -m tests.processes.shifted 3600 run_worker strict`.

The clock is injected into Python rather than faked under it: the monotonic clock, by which waits end, is left alone.
"""

import sys
import time
from datetime import datetime, timedelta

from django.core.management import execute_from_command_line
from django.utils import timezone


def shift(seconds: float) -> None:
    real_time, real_time_ns, real_now = time.time, time.time_ns, timezone.now

    def now() -> datetime:
        return real_now() + timedelta(seconds=seconds)

    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: real_time_ns() + int(seconds * 1e9)
    timezone.now = now


if __name__ == "__main__":
    offset, *command = sys.argv[1:]
    shift(float(offset))
    sys.argv = ["manage.py", *command]
    execute_from_command_line(sys.argv)
