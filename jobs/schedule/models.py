"""The schedule's tables. State is changed only by the SQL in store.py; these classes are for reading.

jobs_job       one row per declared job: since when it is known, up to when its slots are noted, whether it is paused
jobs_run       one row per job and nominal slot, whatever became of it
jobs_lock      who runs a job now, until when, under which fencing token
jobs_process   schedulers, watchmen and workers, and when each last showed a sign of life
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.schedule import rules


class ScheduledJob(models.Model):
    """A job of winecellar/schedule.py. `cron` follows the code at each migrate, the rest is the scheduler's."""

    name = models.SlugField(primary_key=True, max_length=60)
    cron = models.CharField(max_length=100, help_text="In UTC.")
    first_seen_at = models.DateTimeField(help_text="Slots before this are nobody's: a new schedule back-fills nothing.")
    noted_until = models.DateTimeField(help_text="Every slot up to here has its row.")
    paused_at = models.DateTimeField(null=True)
    retired_at = models.DateTimeField(null=True, help_text="When the code stopped declaring it.")

    class Meta:
        db_table = "jobs_job"
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(name="jobs_job_noted", condition=Q(noted_until__gte=models.F("first_seen_at"))),
        )

    def __str__(self) -> str:
        return self.name


class JobLock(models.Model):
    """One per job. Free: no token. A token is never reused, so whoever holds an old one can commit nothing."""

    job = models.OneToOneField(ScheduledJob, models.PROTECT, primary_key=True, db_column="job", related_name="lock")
    token = models.BigIntegerField(null=True)
    owner = models.TextField(blank=True)
    run = models.ForeignKey("jobs.JobRun", models.PROTECT, null=True, db_index=False, related_name="+")
    taken_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "jobs_lock"
        constraints = (
            models.CheckConstraint(
                name="jobs_lock_held_or_free",
                condition=Q(token=None, run=None, taken_at=None, expires_at=None, owner="")
                | (Q(token__isnull=False, run__isnull=False, taken_at__isnull=False) & Q(expires_at__isnull=False)),
            ),
        )

    def __str__(self) -> str:
        return f"{self.job_id}: {self.owner or 'free'}"


class JobRun(models.Model):
    """One nominal slot of one job, and what became of it."""

    class Outcome(models.TextChoices):
        WAITING = rules.Outcome.WAITING.value, "waiting"
        RUNNING = rules.Outcome.RUNNING.value, "running"
        RAN = rules.Outcome.RAN.value, "ran"
        FAILED = rules.Outcome.FAILED.value, "failed"
        CRASHED = rules.Outcome.CRASHED.value, "crashed"
        SKIPPED = rules.Outcome.SKIPPED.value, "skipped: still running"
        MISSED = rules.Outcome.MISSED.value, "missed: skipped"
        PAUSED = rules.Outcome.PAUSED.value, "skipped: paused"

    class Origin(models.TextChoices):
        SLOT = rules.Origin.SLOT.value, "its time came"
        CAUGHT_UP = rules.Origin.CAUGHT_UP.value, "missed: caught up"
        BY_HAND = rules.Origin.BY_HAND.value, "by hand"

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(ScheduledJob, models.PROTECT, db_column="job", db_index=False, related_name="runs")
    scheduled_for = models.DateTimeField(help_text="The nominal time.")
    outcome = models.CharField(max_length=10, choices=Outcome)
    origin = models.CharField(max_length=10, choices=Origin)
    reason = models.TextField(blank=True)
    error_class = models.TextField(blank=True)
    asked_by = models.TextField(blank=True, help_text="Who asked for it, if a person did.")
    attempt = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now(), help_text="When it may begin: at once, or after a failure's wait.")
    noted_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    token = models.BigIntegerField(null=True)
    owner = models.TextField(blank=True)
    done = models.BigIntegerField(null=True)
    total = models.BigIntegerField(null=True)
    counts = models.JSONField(default=dict)
    earlier = models.JSONField(default=list, help_text="The attempts before this one: when, and how each ended.")

    BEGUN: ClassVar = (Outcome.RUNNING, Outcome.RAN, Outcome.FAILED, Outcome.CRASHED)

    class Meta:
        db_table = "jobs_run"
        ordering = ("-scheduled_for", "job")
        constraints = (
            models.UniqueConstraint(name="jobs_run_one_per_slot", fields=("job", "scheduled_for")),
            models.UniqueConstraint(name="jobs_run_one_running", fields=("job",), condition=Q(outcome="running")),
            models.CheckConstraint(
                name="jobs_run_under_way_or_ended",
                condition=Q(outcome__in=("waiting", "running"), ended_at=None)
                | (~Q(outcome__in=("waiting", "running")) & Q(ended_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="jobs_run_begun",
                condition=Q(
                    outcome__in=("running", "ran", "failed", "crashed"), started_at__isnull=False, attempt__gte=1
                )
                | (~Q(outcome__in=("running", "ran", "failed", "crashed")) & Q(started_at=None)),
            ),
            models.CheckConstraint(
                name="jobs_run_token_while_running",
                condition=Q(outcome="running", token__isnull=False) | (~Q(outcome="running") & Q(token=None)),
            ),
            models.CheckConstraint(
                name="jobs_run_known_words",
                condition=Q(
                    outcome__in=("waiting", "running", "ran", "failed", "crashed", "skipped", "missed", "paused"),
                    origin__in=("slot", "caught_up", "by_hand"),
                ),
            ),
        )
        indexes = (
            # What may begin, asked every few seconds.
            models.Index(name="jobs_run_waiting", fields=["job", "due_at"], condition=Q(outcome="waiting")),
            # The last success of each job, asked by the watchman; and its usual duration.
            models.Index(name="jobs_run_ran", fields=["job", "-ended_at"], condition=Q(outcome="ran")),
        )

    def __str__(self) -> str:
        return f"{self.job_id} of {self.scheduled_for:%Y-%m-%d %H:%M} UTC"

    @property
    def in_words(self) -> str:
        """What became of the slot: “ran”, “ran (missed: caught up)”, “skipped: still running”."""
        return self.get_outcome_display() + (
            "" if self.origin == self.Origin.SLOT else f" ({self.get_origin_display()})"
        )

    @property
    def duration(self) -> timedelta | None:
        return self.ended_at - self.started_at if self.started_at and self.ended_at else None


class Process(models.Model):
    """A scheduler, a watchman or a worker. Its heartbeat tells whoever judges that it is alive."""

    class Kind(models.TextChoices):
        SCHEDULER = "scheduler", "scheduler"
        WATCHMAN = "watchman", "watchman"
        WORKER = "worker", "worker"

    pk = models.CompositePrimaryKey("kind", "owner")
    kind = models.CharField(max_length=10, choices=Kind)
    owner = models.TextField(help_text="Host and process id.")
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()
    facts = models.JSONField(default=dict, db_default={}, help_text="A worker's: what is under way, and since when.")
    number = models.IntegerField(null=True, help_text="A worker's, which its leases carry.")

    class Meta:
        db_table = "jobs_process"

    def __str__(self) -> str:
        return f"{self.kind} {self.owner}"
