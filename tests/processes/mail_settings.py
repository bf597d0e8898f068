"""The site's own settings for workers that send mail under test: the same promises, in a tenth of the time."""

from winecellar.settings import *  # noqa: F403

VISIBILITY_TIMEOUT = timedelta(seconds=2)  # noqa: F405
HANDLER_TIME_LIMIT = timedelta(seconds=1.5)  # noqa: F405
RETRY_BACKOFF_BASE = timedelta(milliseconds=50)  # noqa: F405
WORKER_POLL_INTERVAL = timedelta(milliseconds=200)  # noqa: F405
EXTERNAL_TIME_LIMIT = timedelta(seconds=20)  # noqa: F405
PAYMENT_TIMEOUT = timedelta(seconds=5)  # noqa: F405
BREAKER_FIRST_WAIT = timedelta(milliseconds=300)  # noqa: F405
BREAKER_LONGEST_WAIT = timedelta(seconds=1)  # noqa: F405
