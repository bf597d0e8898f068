"""How long the dead letters' pages take with a million of them: `python -m tests.benchmarks.dead_letters [count]`.

Fills the database that the environment names, unless it holds as many already; ends by saying the median and the
slowest of each page, over HTTP's inside (Django's test client), and of what the alarms ask every fifteen seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median

FILL = """
INSERT INTO jobs_deadletter (subscription_name, message_id, event_id, message_type, key, body, attributes, cause,
    error_class, reason, traceback, failures, receive_count, published_at, dead_lettered_at, waits_from, origin,
    fingerprint, decision, decided_at, decided_by, note)
SELECT 's' || n %% 5, n, 'evt_bench_' || n, 'wine.price_changed', 'wn_' || n %% 5000, '{"currency": "USD "}', '{}',
       'permanent', 'Error' || n %% 7, 'the reason of it', repeat('a line of a traceback ', 40), '[]', 1, at, at,
       CASE WHEN n %% 4 > 0 THEN at END, 'mch_' || n %% 200, md5((n %% 300)::text)::varchar(16),
       CASE WHEN n %% 4 > 0 THEN '' ELSE 'discard' END, at, 'bench', 'bench'
FROM (SELECT n, now() - n * interval '1 second' AS at FROM generate_series(%s::int, %s::int) n) filled
"""
LIST = "/admin/jobs/deadletter/letters/"
PAGES = {
    "kinds of letters": "/admin/jobs/deadletter/",
    "the list": LIST,
    "of one merchant, undecided": LIST + "?origin=mch_7&decision=open",
    "of one class, which no index serves": LIST + "?error=Error3&decision=discard",
    "of a class that there is not": LIST + "?error=None",
    "a page far back": LIST + "?before=2026-01-01T00:00%2B00:00,0",
}


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

    from jobs.dead_letters import store
    from winecellar.accounts.models import User

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM jobs_deadletter")
        (there,) = cursor.fetchone()
        began = time.perf_counter()
        for first in range(there + 1, count + 1, 50_000):
            cursor.execute(FILL, [first, min(first + 49_999, count)])
        if there < count:
            print(f"{count - there:,} letters buried in {time.perf_counter() - began:.0f} s, their tally included")
        cursor.execute("VACUUM ANALYZE jobs_deadletter, jobs_deadletter_tally")
        cursor.execute(
            "SELECT count(*), max(id) FROM jobs_deadletter_tally, (SELECT max(id) AS id FROM jobs_deadletter) l"
        )
        tallied, last = cursor.fetchone()
    print(f"{count:,} letters, {tallied:,} rows of the tally")
    address = "bench-letters@winecellar.example"
    User.objects.filter(email=address).exists() or User.objects.create_superuser(address, "a-password-of-the-bench")
    client = Client()
    client.force_login(User.objects.get(email=address))

    def page(at: str) -> Callable[[], object]:
        def get() -> None:
            assert client.get(at).status_code == 200, at

        return get

    pages = {**PAGES, "one case file": f"/admin/jobs/deadletter/{last}/change/"}
    for name, at in pages.items():
        _say(name, page(at))
    now = store.now()
    _say("what the alarms ask", lambda: store.waiting(now))


def _say(name: str, do: Callable[[], object]) -> None:
    times = []
    for _ in range(11):
        began = time.perf_counter()
        do()
        times.append((time.perf_counter() - began) * 1_000)
    print(f"  {name:<40}{median(times[1:]):7.0f} ms{max(times[1:]):7.0f} ms")


if __name__ == "__main__":
    main()
