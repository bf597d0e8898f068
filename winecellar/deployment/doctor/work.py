"""Whether work is done: the log has room, subscriptions follow the code, processes live, nothing waits too long."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.db.models import Max, Min

from jobs.models import Delivery, Incident, Process, ScheduledJob, Subscription
from jobs.schedule import store
from jobs.schedule.declared import load_schedule
from jobs.subscriptions import load_routes
from winecellar.deployment.doctor.finding import Finding, fail, ok, warn
from winecellar.deployment.doctor.server import ask


def months_ahead() -> Iterator[Finding]:
    ((ready, strays),) = ask(
        "SELECT to_regclass('jobs_message_' || to_char(now() AT TIME ZONE 'UTC' + interval '1 month', 'YYYY_MM'))"
        " IS NOT NULL, EXISTS (SELECT FROM ONLY jobs_message_default)"
    )
    if not ready:
        do = "Run manage.py run_job message-months, and find out why the schedule has not."
        yield fail("message-log", "The message log has no partition for the next month.", do)
    if strays:
        do = "Move them while the queue is quiet, and attach the month (docs/queue.md)."
        yield warn("message-log", "Messages are in the partition for what has no month.", do)
    if ready and not strays:
        yield ok("message-log", "the next month is there")


def subscriptions() -> Iterator[Finding]:
    rows = {row.name: row for row in Subscription.objects.all()}
    routes = load_routes()
    wrong = False
    for name, route in routes.items():
        row = rows.get(name)
        if row is None or sorted(row.message_types) != sorted(route.message_types):
            wrong = True
            yield fail("subscriptions", f"{name} is not in the table as in the code.", "Run manage.py migrate.")
        elif row.paused_at:
            wrong = True
            do = f"manage.py subscriptions resume {name}, once what it was paused for is over."
            yield warn("subscriptions", f"{name} is paused since {row.paused_at:%Y-%m-%d %H:%M} UTC.", do)
    for name in sorted(set(rows) - set(routes)):
        wrong = True
        do = "Deploy the code that handles it, or delete the row once its deliveries are decided about."
        yield warn("subscriptions", f"No code handles {name}, and it fills.", do)
    if not wrong:
        yield ok("subscriptions", f"{len(routes)}, as in the code")


def processes() -> Iterator[Finding]:
    beats = dict(Process.objects.values_list("kind").annotate(Max("beat_at")).order_by())
    now = store.now()
    for kind, command in (("scheduler", "run_scheduler"), ("watchman", "run_watchman")):
        beat = beats.get(kind)
        if beat is None or now - beat > settings.PROCESS_SILENT_AFTER:
            said = "has never run" if beat is None else f"is silent since {beat:%Y-%m-%d %H:%M} UTC"
            yield fail("processes", f"The {kind} {said}.", f"Start manage.py {command} (deploy/ has its unit).")
        else:
            yield ok("processes", f"a {kind} lives")
    jobs = set(load_schedule())
    known = set(ScheduledJob.objects.filter(retired_at=None).values_list("name", flat=True))
    if jobs != known:
        differ = ", ".join(sorted(jobs ^ known))
        yield fail("schedule", f"The schedule in the table is not the code's: {differ}.", "Run manage.py migrate.")
    else:
        yield ok("schedule", f"{len(jobs)} jobs, as in the code")


def oldest_delivery() -> Iterator[Finding]:
    """Only what could be handled now: what was put back for later has its reason."""
    waiting = Delivery.objects.filter(visible_at__lt=store.now()).aggregate(since=Min("published_at"))["since"]
    if waiting is not None and store.now() - waiting > settings.ALERT_PROMISE:
        minutes = (store.now() - waiting).total_seconds() / 60
        do = "See that workers run (deploy/ has their unit), and what they say; then docs/queue.md."
        yield fail("queue", f"A message waits for {minutes:.0f} minutes, and nobody takes it.", do)
    else:
        yield ok("queue", "nothing waits longer than it may")


def incidents() -> Iterator[Finding]:
    open_now = Incident.objects.filter(opened_at__isnull=False, closed_at=None).order_by("opened_at")
    for incident in open_now:
        do = "docs/schedule.md has a paragraph for it."
        yield warn("incidents", f"Open: {incident.alarm} {incident.subject}: {incident.summary}", do)
    if not open_now:
        yield ok("incidents", "none is open")
