"""What reading all gauges costs with a million deliveries waiting: `python -m tests.benchmarks.gauges [count]`.

Fills the queue of the database that the environment names (one for this alone), a tenth of it in one partition; says
what the count itself costs, which the watchman makes beside the queue, and then what each reading costs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median

FILL = """
INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key, visible_at)
SELECT s.id, CASE WHEN n %% 10 = 0 THEN 0 ELSE n %% s.partitions END, n, at, 'evt_' || n, 'wn_' || n %% 5000, at
FROM (SELECT n, clock_timestamp() - n * interval '1 ms' AS at FROM generate_series(%s::int, %s::int) n) filled
JOIN jobs_subscription s
  ON s.name = (ARRAY['price-history', 'alert-matching', 'search-index', 'analytics-rollup'])[n %% 4 + 1]
"""
MINUTES = """
INSERT INTO jobs_minute (minute, subscription_id, part, arrived, received, acked, depth, due_seconds)
SELECT date_trunc('minute', now()) - n * interval '1 minute', s.id, p, 100, 100, 99, 10000, 5
FROM generate_series(0, 2879) n, jobs_subscription s, generate_series(0, s.partitions - 1) p ON CONFLICT DO NOTHING
"""
OCCURRENCES = """
INSERT INTO jobs_occurrence (kind, minute, subscription_id, name, count)
SELECT what.kind, date_trunc('minute', now()) - n * interval '1 minute', s.id, what.name, 10
FROM generate_series(0, 2879) n, jobs_subscription s,
     (SELECT 'applied' AS kind, b::text AS name FROM generate_series(10, 20) b
      UNION ALL SELECT 'error', 'Error' || e FROM generate_series(1, 2) e) what
UNION ALL
SELECT 'arrived', date_bin('5 minutes', now(), timestamptz '2000-01-01Z') - n * interval '5 minutes', id, '', 500
FROM generate_series(0, 575) n, jobs_subscription ON CONFLICT DO NOTHING
"""


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")
    os.environ.update(STAFF_NEED_SECOND_FACTOR="false", LOG_LEVEL="CRITICAL", ALLOWED_HOSTS="testserver")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    from winecellar import embedded

    started = embedded.start_unless_external()
    try:
        import django

        django.setup()
        _measure(count)
    finally:
        if started:
            embedded.default().stop()


def _measure(count: int) -> None:
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from jobs.alarms import evaluation
    from jobs.gauges import census, export
    from jobs.gauges.reading import read
    from jobs.schedule import store
    from winecellar.accounts.models import User

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM jobs_delivery")
        (there,) = cursor.fetchone()
        for first in range(there + 1, count + 1, 100_000):
            cursor.execute(FILL, [first, min(first + 99_999, count)])
        cursor.execute(MINUTES)
        cursor.execute(OCCURRENCES)
        cursor.execute("VACUUM ANALYZE jobs_delivery, jobs_minute, jobs_occurrence, jobs_census")
    print(f"{count:,} deliveries wait; two days of minutes, with every partition and 13 kinds of figures in each")
    from django.conf import settings

    settings.CENSUS_SHARE = 1e9
    _say("the watchman's count", census.take)
    settings.WATCHMAN_INTERVAL = settings.GAUGE_RETENTION  # the count stays fresh while we measure
    now = store.now()
    reading = read(now)
    assert sum(s.depth for s in reading.subscriptions) == count, "the gauges say what waits"
    _say("reading every gauge", lambda: read(store.now()))
    _say("the same as text for Prometheus", lambda: export.text(reading))
    _say("every alarm judged", lambda: evaluation.look(store.now()))
    address = "bench-gauges@winecellar.example"
    User.objects.filter(email=address).exists() or User.objects.create_superuser(address, "a-password-of-the-bench")
    client = Client(REMOTE_ADDR="127.0.0.1")
    client.force_login(User.objects.get(email=address))
    for name, path in (("/metrics", "/metrics"), ("the page", "/admin/jobs/subscription/operations/")):
        assert client.get(path).status_code == 200, path
        _say(name, lambda path=path: client.get(path))  # type: ignore[misc]


def _say(name: str, do: Callable[[], object]) -> None:
    times = []
    for _ in range(21):
        began = time.perf_counter()
        do()
        times.append((time.perf_counter() - began) * 1_000)
    print(f"  {name:<40}{median(times[1:]):7.1f} ms{max(times[1:]):7.1f} ms")


if __name__ == "__main__":
    main()
