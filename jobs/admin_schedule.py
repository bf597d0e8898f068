"""The schedule in the admin: jobs with their next slots and their durations over time, every slot's row, incidents.

Edges only. What the scheduler writes is read-only; a person pauses, resumes, runs now, acknowledges.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.alarms import incidents
from jobs.alarms.pages import address_of, page_of, runbook_address
from jobs.models import Incident, JobRun, ScheduledJob
from jobs.read_only import ReadOnlyAdmin
from jobs.schedule import control, cron, store
from jobs.schedule.bars import bars
from jobs.schedule.declared import load_schedule
from jobs.words import span, utc

SHOWN_SLOTS = 5
SHOWN_RUNS = 60


@admin.register(ScheduledJob)
class ScheduledJobAdmin(ReadOnlyAdmin):
    list_display = ("name", "cron", "next_slot", "last_run", "took", "paused_at")
    fields = ("name", "cron", "policy", "next_slots", "durations", "first_seen_at", "noted_until", "paused_at")
    readonly_fields = fields
    actions = ("pause", "resume", "run_now")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScheduledJob]:
        return super().get_queryset(request).filter(retired_at=None)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.change_scheduledjob")

    @admin.display(description="next slot")
    def next_slot(self, job: ScheduledJob) -> str:
        return utc(cron.next_slot(job.cron, store.now()))

    @admin.display(description="next slots")
    def next_slots(self, job: ScheduledJob) -> str:
        return ", ".join(utc(slot) for slot in islice(cron.slots_after(job.cron, store.now()), SHOWN_SLOTS))

    @admin.display(description="last run")
    def last_run(self, job: ScheduledJob) -> str:
        run = job.runs.exclude(outcome=JobRun.Outcome.WAITING).first()
        return f"{utc(run.scheduled_for)}: {run.in_words}" if run else "none yet"

    @admin.display(description="took")
    def took(self, job: ScheduledJob) -> str:
        run = job.runs.filter(outcome=JobRun.Outcome.RAN).first()
        return span(run.duration) if run and run.duration is not None else "–"

    @admin.display(description="policy")
    def policy(self, job: ScheduledJob) -> str:
        declared = load_schedule().get(job.name)
        if declared is None:
            return "This version of the code does not declare it."
        return (
            f"overlap: {declared.overlap}; missed slots: {declared.catch_up}; {declared.attempts} attempts of at most "
            f"{span(declared.time_limit)}; lock lives {span(declared.lock_ttl)}; alarm after {span(declared.heartbeat)}"
        )

    @admin.display(description="durations")
    def durations(self, job: ScheduledJob) -> SafeString | str:
        """The last runs as bars, oldest first; the runs' own page has the figures."""
        runs = job.runs.filter(outcome__in=JobRun.BEGUN, ended_at__isnull=False)[:SHOWN_RUNS]
        return bars([(run.duration, f"{utc(run.scheduled_for)}, {run.in_words}") for run in reversed(runs)])

    @admin.action(description="Pause: let its slots pass", permissions=["operate"])
    def pause(self, request: HttpRequest, queryset: QuerySet[ScheduledJob]) -> None:
        for job in queryset:
            with transaction.atomic():  # what was done and who did it
                paused = control.pause(job=job.name)
                if paused:
                    self.log_change(request, job, "Paused.")
            if paused:
                self.message_user(request, f"{job}: paused. Its slots pass; its alarm stays on.")
            else:
                self.message_user(request, f"{job} is paused already.", messages.WARNING)

    @admin.action(description="Resume: from its next slot on", permissions=["operate"])
    def resume(self, request: HttpRequest, queryset: QuerySet[ScheduledJob]) -> None:
        for job in queryset:
            with transaction.atomic():
                resumed = control.resume(job=job.name)
                if resumed:
                    self.log_change(request, job, "Resumed.")
            if resumed:
                self.message_user(request, f"{job}: resumed, next at {self.next_slot(job)}.")
            else:
                self.message_user(request, f"{job} is not paused.", messages.WARNING)

    @admin.action(description="Run now: its latest slot, again if it ran", permissions=["operate"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[ScheduledJob]) -> None:
        for job in queryset:
            declared = load_schedule().get(job.name)
            if declared is None:
                self.message_user(request, f"{job}: this version of the code does not declare it.", messages.ERROR)
                continue
            with transaction.atomic():
                slot = control.run_now(job=declared, by=str(request.user.pk), now=store.now())
                if slot:
                    self.log_change(request, job, f"Asked for the run of {utc(slot)}.")
            if slot:
                self.message_user(request, f"{job}: a scheduler runs the slot of {utc(slot)} within seconds.")
            else:
                self.message_user(request, f"{job}: its latest slot is under way already.", messages.WARNING)


@admin.register(JobRun)
class JobRunAdmin(ReadOnlyAdmin):
    list_display = ("slot", "job", "became", "took", "counted", "reason")
    list_filter = ("job", "outcome", "origin")
    ordering = ("-scheduled_for", "job")

    @admin.display(description="slot", ordering="scheduled_for")
    def slot(self, run: JobRun) -> str:
        return utc(run.scheduled_for)

    @admin.display(description="what became of it", ordering="outcome")
    def became(self, run: JobRun) -> str:
        return run.in_words + (f", attempt {run.attempt}" if run.attempt > 1 else "")

    @admin.display(description="progress")
    def counted(self, run: JobRun) -> str:
        if run.done is None:
            return "–"
        facts = "".join(f"; {name} {value}" for name, value in run.counts.items())
        return f"{run.done:,}{f' of {run.total:,}' if run.total is not None else ''}{facts}"

    @admin.display(description="took")
    def took(self, run: JobRun) -> str:
        return span(run.duration) if run.duration is not None else "–"


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "Open"), ("acknowledged", "Acknowledged"), ("closed", "Closed"), ("suspected", "Suspected")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Incident]) -> QuerySet[Incident]:
        match self.value():
            case "open":
                return queryset.filter(closed_at=None, acknowledged_at=None, opened_at__isnull=False)
            case "acknowledged":
                return queryset.filter(closed_at=None, acknowledged_at__isnull=False)
            case "closed":
                return queryset.filter(closed_at__isnull=False)
            case "suspected":
                return queryset.filter(opened_at=None)
        return queryset


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    list_display = ("alarm", "subject", "state", "severity", "summary", "seen_since")
    list_filter = (StateFilter, "severity", "alarm")
    search_fields = ("subject",)
    ordering = ("-id",)
    actions = ("acknowledge",)
    said = ("alarm", "subject", "severity", "state", "summary", "what_to_do", "since", "last_true_at", "opened_at")
    fields = (*said, "told_at", "acknowledged_at", "acknowledged_by", "closed_at")
    readonly_fields = fields

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.change_incident")

    @admin.display(description="since", ordering="since")
    def seen_since(self, incident: Incident) -> str:
        return utc(incident.since)

    @admin.display(description="what to do")
    def what_to_do(self, incident: Incident) -> SafeString:
        links = format_html_join("", '; <a href="{}">look there</a>', ((path,) for path in address_of(incident)))
        address, path = runbook_address(incident.alarm), page_of(incident.alarm)
        return format_html('<a href="{}">{}</a>, “{}”{}', address, path, incident.alarm, links)

    @admin.action(description="Acknowledge: I have seen it", permissions=["operate"])
    def acknowledge(self, request: HttpRequest, queryset: QuerySet[Incident]) -> None:
        for incident in queryset:
            with transaction.atomic():
                acknowledged = incidents.acknowledge(incident_id=incident.pk, by=str(request.user.pk))
                if acknowledged:
                    self.log_change(request, incident, "Acknowledged.")
            if acknowledged:
                self.message_user(request, f"{incident}: acknowledged.")
            else:
                self.message_user(request, f"{incident} needs no acknowledging.", messages.WARNING)
