"""System checks: what must hold between settings and routes, found by `manage.py check` and not at 3 a.m."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection

from jobs.messages import is_command
from jobs.models import ScheduledJob, Subscription
from jobs.retry import ceiling
from jobs.schedule import cron
from jobs.schedule.declared import Job, Zone
from jobs.standard_webhooks import read_secret
from jobs.subscriptions import External, Route

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@register()
def clock_is_utc(**_: Any) -> Iterable[CheckMessage]:
    if settings.TIME_ZONE != "UTC" or not settings.USE_TZ:
        yield Error(
            "TIME_ZONE must be UTC and USE_TZ true.",
            hint="A local zone has an hour that does not exist and one that comes twice, each year.",
            id="jobs.E001",
        )


@register()
def handlers_end_before_their_lease(**_: Any) -> Iterable[CheckMessage]:
    if settings.HANDLER_TIME_LIMIT >= settings.VISIBILITY_TIMEOUT:
        yield Error(
            "HANDLER_TIME_LIMIT must be shorter than VISIBILITY_TIMEOUT.",
            hint="A handler that outlives its lease works on deliveries that another worker has been given.",
            id="jobs.E002",
        )


@register()
def ledger_outlives_redelivery(**_: Any) -> Iterable[CheckMessage]:
    waits = sum(ceiling(n, base=settings.RETRY_BACKOFF_BASE.total_seconds()) for n in range(1, settings.MAX_RECEIVES))
    longest = settings.MAX_RECEIVES * settings.VISIBILITY_TIMEOUT.total_seconds() + waits
    if settings.LEDGER_RETENTION.total_seconds() <= longest:
        yield Error(
            f"LEDGER_RETENTION must exceed the {longest:.0f} s over which a delivery can be redelivered.",
            id="jobs.E003",
        )
    if settings.DEAD_LETTER_RETENTION < settings.LEDGER_RETENTION:
        yield Error("DEAD_LETTER_RETENTION must not be shorter than LEDGER_RETENTION.", id="jobs.E004")


@register(Tags.database)
def every_subscription_has_a_route(databases: Sequence[str] | None, **_: Any) -> Iterable[CheckMessage]:
    """Only with `check --database default`: a subscription that no code handles fills up in silence."""
    if not databases or "jobs_subscription" not in connection.introspection.table_names():
        return
    routes = {route.name for route in import_module(settings.QUEUE_ROUTES).ROUTES}
    for name in sorted(set(Subscription.objects.values_list("name", flat=True)) - routes):
        yield Warning(
            f"The subscription {name!r} has no route.",
            hint="Deploy the code that handles it, or delete the subscription once its deliveries are decided about.",
            id="jobs.W001",
        )


@register()
def routes_are_sound(**_: Any) -> Iterable[CheckMessage]:
    routes: list[Route] = import_module(settings.QUEUE_ROUTES).ROUTES
    for name, count in Counter(route.name for route in routes).items():
        if count > 1:
            yield Error(f"{count} routes are named {name!r}.", hint="The ledger is kept by this name.", id="jobs.E005")
    owners = Counter(type_ for route in routes for type_ in route.message_types if is_command(type_))
    for type_, count in owners.items():
        if count > 1:
            yield Error(
                f"The command {type_!r} has {count} subscriptions.",
                hint="A command is an instruction to one handler. If several should react, publish an event.",
                id="jobs.E006",
            )
    for route in routes:
        if route.ordered and isinstance(route.handler, External):
            yield Error(
                f"{route.name!r} is ordered and its effect is outside Postgres.",
                hint="External effects run many at a time and cannot keep an order.",
                id="jobs.E007",
            )
        if not 1 <= route.partitions <= 1024 or not 1 <= route.batch <= 10_000:
            yield Error(f"{route.name!r}: partitions must be in 1..1024 and batch in 1..10000.", id="jobs.E008")


@register()
def schedule_is_sound(**_: Any) -> Iterable[CheckMessage]:
    jobs: list[Job] = import_module(settings.SCHEDULE).SCHEDULE
    for name, count in Counter(job.name for job in jobs).items():
        if count > 1:
            yield Error(
                f"{count} scheduled jobs are named {name!r}.", hint="Rows and lock are kept by it.", id="jobs.E009"
            )
    for job in jobs:
        yield from _job_is_sound(job)


def _job_is_sound(job: Job) -> Iterable[CheckMessage]:
    if job.zone is not Zone.UTC:
        yield Error(
            f"The schedule of {job.name!r} is not UTC.",
            hint="In any other zone one night a year it would run twice or not at all. Write the hour in UTC.",
            id="jobs.E010",
        )
    try:
        cron.check(job.cron)
    except cron.BadCronError as error:
        yield Error(f"{job.name!r}: {error}.", id="jobs.E011")
        return
    if not timedelta(seconds=1) <= job.lock_ttl <= timedelta(minutes=10):
        yield Error(
            f"{job.name!r}: lock_ttl must be between a second and ten minutes.",
            hint="It is renewed while the job runs; it only says how soon a dead run is found.",
            id="jobs.E012",
        )
    gap = cron.longest_gap(job.cron, datetime(2024, 1, 1, tzinfo=UTC))
    if job.heartbeat <= gap:
        yield Error(
            f"{job.name!r}: heartbeat must exceed {gap}, the longest time between two of its slots.",
            hint="Else its alarm opens although all is well.",
            id="jobs.E013",
        )
    if job.attempts < 1 or job.time_limit <= timedelta(0) or job.catch_up.most < 0 or not _SLUG.fullmatch(job.name):
        yield Error(
            f"{job.name!r}: name in a-z, 0-9 and -; attempts and time_limit above 0; each(n) not negative.",
            id="jobs.E014",
        )


@register(Tags.database)
def every_known_job_is_declared(databases: Sequence[str] | None, **_: Any) -> Iterable[CheckMessage]:
    """Only with `check --database default`: a cron in the table that is not the code's, since nobody migrated."""
    if not databases or "jobs_job" not in connection.introspection.table_names():
        return
    declared = {job.name: job.cron for job in import_module(settings.SCHEDULE).SCHEDULE}
    for name, expression in ScheduledJob.objects.filter(retired_at=None).values_list("name", "cron"):
        if declared.get(name) != expression:
            yield Warning(
                f"The job {name!r} runs by {expression!r}, and the code says {declared.get(name)!r}.",
                hint="Run migrate: it makes the schedule follow the code.",
                id="jobs.W002",
            )


@register()
def alarms_can_be_told(**_: Any) -> Iterable[CheckMessage]:
    if not settings.ALARM_WEBHOOK_SECRET:
        return
    try:
        read_secret(settings.ALARM_WEBHOOK_SECRET)
    except ValueError as error:
        yield Error(f"ALARM_WEBHOOK_SECRET: {error}", hint="Copy it as the receiver shows it.", id="jobs.E019")


@register()
def thresholds_leave_time(**_: Any) -> Iterable[CheckMessage]:
    if not 0 < settings.ALARM_WARN_SHARE < settings.ALARM_PAGE_SHARE <= 1:
        yield Error(
            "ALARM_WARN_SHARE must be below ALARM_PAGE_SHARE, and both within 0 and 1.",
            hint="They are shares of what is promised: a page after it is broken is too late.",
            id="jobs.E020",
        )
