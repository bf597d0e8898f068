"""One subscription over what the publishers of the chaos publish, with a row for each effect."""

from jobs.subscriptions import Route
from tests.jobs.routes import record_effects

ROUTES = [Route("strict", ("chaos.counted",), record_effects, ordered=True, partitions=4, batch=100)]
