"""Settings of the workers that lose their primary: short leases, and the one subscription of routes.py."""

from tests.jobs.process_settings import *  # noqa: F403

QUEUE_ROUTES = "tests.failover.routes"
