"""Dead letters, what was decided about them, and the redrives. Written by services and redrive."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Decision(models.TextChoices):
    """What a person decided. Empty: nothing yet. A quarantined letter waits for a decision again from its date on."""

    REDRIVE = "redrive", "redriven as it is"
    READAPT = "readapt", "re-adapted and redriven"
    DISCARD = "discard", "discarded"
    SUPERSEDED = "superseded", "discarded as superseded"
    QUARANTINE = "quarantine", "quarantined"


class Outcome(models.TextChoices):
    """What became of a redriven letter. The first two are under way, the others are final."""

    QUEUED = "queued", "waits for its turn"
    SENT = "sent", "in the queue"
    APPLIED = "applied", "applied"
    OLDER = "older", "applied, though older than what is current"
    SUPPRESSED = "suppressed", "suppressed: the ledger knew it"
    FAILED_AGAIN = "failed_again", "failed again"
    REFUSED = "refused", "not sent: it would fail again"


class Redrive(models.Model):
    """One decision to redrive: a selection of letters, sent at a rate by the `dead-letter-redrive` subscription."""

    class State(models.TextChoices):
        RUNNING = "running", "running"
        STOPPED = "stopped", "stopped"
        DONE = "done", "done"

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=10, choices=[(d.value, d.label) for d in (Decision.REDRIVE, Decision.READAPT)])
    selection = models.TextField(help_text="Which letters were asked for, in words.")
    total = models.PositiveIntegerField()
    rate_per_second = models.PositiveSmallIntegerField()
    stop_share = models.FloatField(help_text="It stops by itself when more than this share fails again.")
    by = models.TextField()
    note = models.TextField()
    told = models.TextField(db_default="", help_text="Who knows that old letters will be processed again.")
    state = models.CharField(max_length=10, choices=State, db_default=State.RUNNING.value)
    counts = models.JSONField(default=dict, help_text="Letters by outcome, as of the last step.")
    created_at = models.DateTimeField(db_default=Now())
    next_at = models.DateTimeField(db_default=Now(), help_text="When the next portion may go.")
    stop_asked_by = models.TextField(db_default="")
    stopped_because = models.TextField(db_default="")
    ended_at = models.DateTimeField(null=True, help_text="When nothing of it was under way any more.")

    class Meta:
        db_table = "jobs_redrive"
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"redrive {self.pk}"


class DeadLetter(models.Model):
    """A delivery that will not be retried by itself. Leaves this table by retention only.

    Or what could not even be published, such as a webhook that nobody can read: it has no `message_id`, and the
    `subscription_name` of whoever took it.
    """

    class Cause(models.TextChoices):
        PERMANENT = "permanent", "The message can never be processed"
        EXHAUSTED = "exhausted", "Every receive failed"
        WORKER_CRASH = "worker_crash", "The worker died each time"

    id = models.BigAutoField(primary_key=True)
    subscription_name = models.CharField("subscription", max_length=80)
    message_id = models.BigIntegerField(null=True, blank=True, help_text="Empty: it never was in the message log.")
    event_id = models.TextField()
    message_type = models.TextField()
    key = models.TextField()
    body = models.JSONField()
    attributes = models.JSONField()
    cause = models.CharField(max_length=20, choices=Cause)
    error_class = models.TextField()
    reason = models.TextField()
    traceback = models.TextField(blank=True)
    failures = models.JSONField(default=list, help_text="Each receive that failed: when, worker, class, reason.")
    receive_count = models.SmallIntegerField()
    published_at = models.DateTimeField()
    first_received_at = models.DateTimeField(null=True)
    dead_lettered_at = models.DateTimeField(db_default=Now())
    origin = models.TextField(db_default="", help_text="Whom it came from, as the domain says: a merchant.")
    fingerprint = models.CharField(max_length=16, db_default="", help_text="The same for letters of one kind.")
    generation = models.PositiveSmallIntegerField(db_default=0, help_text="How often it had been redriven before.")

    decision = models.CharField(max_length=10, choices=Decision, blank=True, db_default="")
    decided_at = models.DateTimeField(null=True)
    decided_by = models.TextField(db_default="")
    note = models.TextField(db_default="", help_text="Why.")
    waits_from = models.DateTimeField(
        null=True,
        db_default=Now(),
        help_text="Since when it waits for a decision, or from when on; empty when decided.",
    )
    assigned_to = models.TextField(db_default="")
    redrive = models.ForeignKey(Redrive, null=True, on_delete=models.PROTECT, related_name="letters", db_index=False)
    outcome = models.CharField(max_length=12, choices=Outcome, blank=True, db_default="")
    older = models.BooleanField(db_default=False, help_text="Newer facts had been applied when it was redriven.")
    sent_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "jobs_deadletter"
        ordering = ("-id",)
        permissions = (
            ("redrive_deadletter", "Can redrive dead letters as they are"),
            ("readapt_deadletter", "Can re-adapt and redrive dead letters"),
            ("discard_deadletter", "Can discard dead letters"),
            ("quarantine_deadletter", "Can quarantine dead letters"),
            ("assign_deadletter", "Can assign dead letters"),
            ("comment_deadletter", "Can comment on dead letters"),
        )
        indexes = (
            # A page of the list, by each filter that is worth an index; retention.
            models.Index(name="jobs_deadletter_age", fields=["dead_lettered_at", "id"]),
            models.Index(name="jobs_deadletter_kind", fields=["fingerprint", "dead_lettered_at", "id"]),
            models.Index(name="jobs_deadletter_origin", fields=["origin", "dead_lettered_at", "id"]),
            models.Index(name="jobs_deadletter_sub", fields=["subscription_name", "dead_lettered_at", "id"]),
            # The letters of one event: its journey, and what it was before it was buried again.
            models.Index(name="jobs_deadletter_event", fields=["event_id"]),
            # The alarms: since when the oldest waits, and when the first will go.
            models.Index(
                name="jobs_deadletter_waits",
                fields=["subscription_name", "waits_from"],
                condition=Q(waits_from__isnull=False),
            ),
            models.Index(
                name="jobs_deadletter_goes",
                fields=["subscription_name", "dead_lettered_at"],
                condition=Q(waits_from__isnull=False),
            ),
            # A redrive's next portion, and its counts.
            models.Index(
                name="jobs_deadletter_redrive",
                fields=["redrive", "outcome", "id"],
                condition=Q(redrive__isnull=False),
            ),
        )
        constraints = (
            models.CheckConstraint(name="jobs_deadletter_received", condition=Q(receive_count__gte=1)),
            models.CheckConstraint(
                name="jobs_deadletter_decided",
                condition=Q(decision__in=["", "quarantine"], waits_from__isnull=False)
                | (Q(waits_from=None) & ~Q(decision__in=["", "quarantine"])),
            ),
            models.CheckConstraint(
                name="jobs_deadletter_by_somebody",
                condition=Q(decision="") | (Q(decided_at__isnull=False) & ~Q(decided_by="") & ~Q(note="")),
            ),
            models.CheckConstraint(
                name="jobs_deadletter_outcome",
                condition=Q(outcome="") | Q(redrive__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.event_id} for {self.subscription_name}: {self.cause}"


class Tally(models.Model):
    """How many letters of one kind came within one hour from one origin, and how many still wait for a decision.

    Kept by triggers on jobs_deadletter, in the transaction of each change, so that a million letters need no COUNT.
    """

    pk = models.CompositePrimaryKey("fingerprint", "hour", "origin")
    fingerprint = models.CharField(max_length=16)
    hour = models.DateTimeField()
    origin = models.TextField()
    letters = models.IntegerField()
    waiting = models.IntegerField()

    class Meta:
        db_table = "jobs_deadletter_tally"

    def __str__(self) -> str:
        return f"{self.fingerprint} {self.hour}: {self.letters}"


class AuditEntry(models.Model):
    """One act about dead letters. Append-only: the database refuses to change or remove a row (migration 0008)."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    by = models.TextField()
    action = models.CharField(max_length=20)
    selection = models.TextField()
    letter_ids = ArrayField(models.BigIntegerField())
    note = models.TextField()
    details = models.JSONField()

    class Meta:
        managed = False
        db_table = "jobs_audit"
        ordering = ("-id",)
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} by {self.by}"
