"""The operators' page: what needs a person now, each subscription as a row of its partitions, the machinery, the hours.

An edge: one reading, rendered. The same fragment comes by itself every few seconds by a script of ours; without script
the page loads again. Figures are as of the last count, so that between two counts the fragment is the same bytes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path

from jobs.alarms.pages import address_of, runbook_address, runbooks
from jobs.gauges import chart, store, words
from jobs.gauges.figures import Partition, Subscription
from jobs.gauges.figures import Subscription as Gauges
from jobs.gauges.reading import Reading, read
from jobs.models import Incident
from jobs.models import Subscription as Declared
from jobs.read_only import ReadOnlyAdmin
from jobs.schedule import store as clock
from jobs.words import span

RUNBOOK_FILES = settings.BASE_DIR / "docs" / "runbooks"
SHARES = {"warn_share": settings.ALARM_WARN_SHARE, "page_share": settings.ALARM_PAGE_SHARE}


@admin.register(Declared)
class SubscriptionAdmin(ReadOnlyAdmin):
    """Changing one is `manage.py subscriptions`."""

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("operations/", wrap(self.operations_view), name="jobs_operations"),
            path("operations/part/", wrap(self.part_view), name="jobs_operations_part"),
            path("runbooks/<slug:name>/", wrap(self.runbook_view), name="jobs_runbook"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return redirect("admin:jobs_operations")

    def operations_view(self, request: HttpRequest) -> HttpResponse:
        self._may_look(request)
        part = _part()
        context = {**self.admin_site.each_context(request), "title": "Operations", "opts": self.opts, "part": part}
        context["etag"] = _etag(part)
        return TemplateResponse(request, "admin/jobs/operations/page.html", context)

    def part_view(self, request: HttpRequest) -> HttpResponse:
        """The page's changing part alone; 304 while it is what the browser has."""
        self._may_look(request)
        part = _part()
        etag = _etag(part)
        unchanged = request.headers.get("If-None-Match") == etag
        response = HttpResponse(status=304) if unchanged else HttpResponse(part)
        response["ETag"], response["Cache-Control"] = etag, "no-store"
        return response

    def runbook_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """The runbook of the version that runs, as it stands in the repository. For whoever is of the staff."""
        if name not in runbooks():
            raise Http404
        try:
            text = (RUNBOOK_FILES / f"{name}.md").read_text()
        except OSError:
            raise Http404 from None
        context = {
            **self.admin_site.each_context(request),
            "title": f"Runbook: {name}",
            "opts": self.opts,
            "text": text,
        }
        return TemplateResponse(request, "admin/jobs/operations/runbook.html", context)

    def _may_look(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


@dataclass(frozen=True)
class Cell:
    """One partition in its subscription's row. `size` is 1 to 3: what waits longer is larger."""

    partition: Partition
    level: str
    hot: bool
    size: int
    said: str


@dataclass(frozen=True)
class Row:
    gauges: Gauges
    state: words.State
    cells: list[Cell]
    chart: chart.Chart
    first: list[tuple[str, str]]  # what is looked at
    more: list[tuple[str, str]]  # what is looked up


def _part() -> str:
    now = clock.now()
    reading = read(now, as_counted=True)
    since = reading.counted_at - timedelta(hours=settings.GAUGE_PAGE_HOURS)
    points = defaultdict(list)
    for point in store.history(since):
        points[point.subscription].append(point)
    rows = [_row(s, points[s.partitions[0].counted.subscription], since, reading) for s in reading.subscriptions]
    rows.sort(key=lambda row: (-row.state.level, -row.gauges.worst.waiting, row.gauges.name))
    return render_to_string(
        "admin/jobs/operations/_part.html",
        {
            "reading": reading,
            "rows": rows,
            "incidents": [(i, runbook_address(i.alarm), address_of(i)) for i in _open_incidents()],
            "workers": [process for process in reading.processes if process.kind == "worker"],
            "others": [process for process in reading.processes if process.kind != "worker"],
            "jobs": [(job, _job_said(job, reading)) for job in reading.jobs],
            "stale": now - reading.counted_at > 3 * settings.WATCHMAN_INTERVAL,
            "hours": settings.GAUGE_PAGE_HOURS,
        },
    )


def _etag(part: str) -> str:
    return f'"{hashlib.sha256(part.encode()).hexdigest()[:24]}"'


def _open_incidents() -> list[Incident]:
    """Pages first, and among them what nobody has acknowledged."""
    found = Incident.objects.filter(closed_at=None, opened_at__isnull=False)
    return sorted(found, key=lambda i: (i.acknowledged_at is not None, i.severity != Incident.Severity.PAGE, -i.pk))


def _row(gauges: Subscription, points: list[Any], since: Any, reading: Reading) -> Row:
    return Row(
        gauges,
        words.state(gauges, **SHARES),
        [_cell(gauges, partition) for partition in gauges.partitions],
        chart.draw(points, since=since, until=reading.counted_at, promise=gauges.promise),
        *_facts(gauges),
    )


def _cell(gauges: Subscription, partition: Partition) -> Cell:
    level = words.level_of(partition, gauges.promise, **SHARES)
    said = f"Partition {partition.part}: {partition.depth:,} wait"
    if partition.depth:
        said += f", the longest for {span(partition.waiting)}; drains: {words.drains(partition.drains_in)}"
    return Cell(partition, level.name.lower(), gauges.is_hot(partition), int(level) + 1, said)


def _facts(gauges: Subscription) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Age first, then drain time; and the rest, which is folded away while all is well."""
    ratio, untouched = gauges.receives_per_ack, gauges.total("unreceived")
    first = [
        ("longest wait", span(gauges.worst.waiting) if gauges.depth else "none"),
        ("drains in", words.drains(gauges.drains_in)),
        ("waiting", f"{gauges.depth:,}"),
        ("a minute in, out", f"{words.rate(gauges.arriving)}, {words.rate(gauges.completing)}"),
        ("applied after", words.seconds(gauges.window(0.5))),
        ("99 % after", words.seconds(gauges.window(0.99))),
    ]
    if gauges.errors:
        first.append(("errors", ", ".join(f"{name} {count:,}" for name, count in sorted(gauges.errors.items()))))
    if sum(gauges.dead):
        first.append(("dead letters", f"{sum(gauges.dead):,}"))
    return first, [
        ("oldest message", span(gauges.age) if gauges.depth else "none"),
        ("behind by", f"{untouched:,}, {span(gauges.lag)}" if untouched else "none"),
        ("in flight", f"{gauges.total('in_flight'):,}"),
        ("for a retry", f"{gauges.total('retrying') + gauges.total('suspect'):,}"),
        ("not due yet", f"{gauges.total('delayed'):,}"),
        ("receives for each ack", f"{ratio:.2f}" if ratio else "–"),
        ("promised within", span(gauges.promise)),
    ]


def _job_said(job: Any, reading: Reading) -> str:
    if job.paused_at:
        return "paused"
    since = reading.counted_at - (job.ran_at or job.known_since)
    done = f"completed {span(max(since, timedelta(0)))} ago" if job.ran_at else "has never completed"
    late = f"; late: its limit is {span(job.limit)}" if since > job.limit else ""
    return f"{'runs now; ' if job.running_since else ''}{done}{late}"
