"""The site's settings for the benchmark of purchases: a mail backend that says yes, and nobody who is limited."""

import os
from datetime import timedelta

from winecellar import payment_provider
from winecellar.settings import *  # noqa: F403

EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
PURCHASES_AT_ONCE = 10**6
RESERVATION_TIME = timedelta(hours=1)
PAYMENTS = payment_provider.read(os.environ.get("BENCH_PAYMENTS", "stripe://sk_test_nobody@127.0.0.1:9?tls=false"))
