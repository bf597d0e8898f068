"""The product's settings with the benchmarks' routes; nothing that costs or saves time is changed."""

import os

from winecellar.settings import *  # noqa: F403

QUEUE_ROUTES = os.environ.get("BENCH_ROUTES", "tests.benchmarks.routes")
