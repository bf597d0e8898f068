"""Settings of scheduler and watchman processes under test: the schedule's own jobs, and everything sooner."""

from winecellar.settings import *  # noqa: F403

SCHEDULE = "tests.jobs.schedule.under_test"
SCHEDULER_POLL_INTERVAL = timedelta(milliseconds=200)  # noqa: F405
SCHEDULE_RETRY_BASE = timedelta(milliseconds=50)  # noqa: F405
WORKER_GRACE = timedelta(seconds=2)  # noqa: F405
WATCHMAN_INTERVAL = timedelta(milliseconds=200)  # noqa: F405
PROCESS_SILENT_AFTER = timedelta(seconds=3)  # noqa: F405
INCIDENT_CLOSES_AFTER = timedelta(seconds=1)  # noqa: F405
