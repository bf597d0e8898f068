"""Settings of worker processes under test: the queue's own routes, and short leases so that tests need not wait."""

from winecellar.settings import *  # noqa: F403

QUEUE_ROUTES = "tests.jobs.routes"
VISIBILITY_TIMEOUT = timedelta(seconds=2)  # noqa: F405
HANDLER_TIME_LIMIT = timedelta(seconds=1.5)  # noqa: F405
RETRY_BACKOFF_BASE = timedelta(milliseconds=50)  # noqa: F405
WORKER_POLL_INTERVAL = timedelta(milliseconds=500)  # noqa: F405
WORKER_GRACE = timedelta(seconds=10)  # noqa: F405
WORKER_WATCHDOG = timedelta(seconds=4)  # noqa: F405
WORKER_START_LIMIT = timedelta(seconds=15)  # noqa: F405
