"""The queue's tables. State is changed only by the SQL in queue.py and outbox.py; these classes are for reading.

jobs_message     the log: append-only, partitioned by month so that retention is a DROP
jobs_delivery    hot and small: one row per message and subscription, deleted on ack
processed_messages   the ledger, exactly as in the course
Dead letters are in dead_letters/models.py, what the gauges remember in gauges/models.py.
"""

from django.db import models
from django.db.models.functions import Now

from jobs.alarms.models import Incident, Notice
from jobs.dead_letters.models import AuditEntry, DeadLetter, Redrive, Tally
from jobs.gauges.models import Minute, Occurrence, PartitionCount, Sampler
from jobs.journey.models import Journey
from jobs.schedule.models import JobLock, JobRun, Process, ScheduledJob

__all__ = [
    "AuditEntry",
    "Breaker",
    "DeadLetter",
    "Delivery",
    "Incident",
    "JobLock",
    "JobRun",
    "Journey",
    "LoggedMessage",
    "Minute",
    "Notice",
    "Occurrence",
    "PartitionCount",
    "PastDelivery",
    "Process",
    "ProcessedMessage",
    "Redrive",
    "Sampler",
    "ScheduledJob",
    "Subscription",
    "Tally",
]


class Subscription(models.Model):
    """A consumer's own queue over one or more message types. Declared in winecellar/routes.py.

    `message_types`, `ordered` and `salt` follow the code. The rest belongs to the operator, takes effect within
    two polls and without a restart, and is changed by `manage.py subscriptions`.
    """

    id = models.SmallAutoField(primary_key=True)
    name = models.CharField(max_length=80, unique=True)
    message_types = models.JSONField(help_text="The types it receives, as a list.")
    ordered = models.BooleanField(help_text="Whether one key's deliveries are handled strictly in publication order.")
    salt = models.PositiveSmallIntegerField(default=1, help_text="Into how many keys one key is spread; 1 keeps order.")
    partitions = models.PositiveSmallIntegerField()
    paused_at = models.DateTimeField(null=True, blank=True)
    batch = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Empty: as the route says.")
    concurrency = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Partitions, or effects outside Postgres, that one worker handles at once."
    )
    rate_per_second = models.FloatField(null=True, blank=True, help_text="Deliveries handed out, over all workers.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "jobs_subscription"
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(name="jobs_subscription_partitions", condition=models.Q(partitions__gte=1)),
            models.CheckConstraint(name="jobs_subscription_salt", condition=models.Q(salt__gte=1)),
            models.CheckConstraint(
                name="jobs_subscription_limits",
                condition=(models.Q(batch__isnull=True) | models.Q(batch__gte=1))
                & (models.Q(concurrency__isnull=True) | models.Q(concurrency__gte=1))
                & (models.Q(rate_per_second__isnull=True) | models.Q(rate_per_second__gt=0)),
            ),
        )

    def __str__(self) -> str:
        return self.name


class Breaker(models.Model):
    """Whether another side that effects depend on is well; changed by breaker.py only. Its words: breaker_rules.py."""

    name = models.CharField(max_length=80, primary_key=True)
    failed = models.PositiveIntegerField(default=0, db_default=0)
    succeeded = models.PositiveIntegerField(default=0, db_default=0)
    last_failed_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True, help_text="Since when nothing is sent but a probe; empty: all is sent.")
    probe_at = models.DateTimeField(null=True, help_text="When it is tried again.")
    probe_token = models.BigIntegerField(null=True)
    probe_until = models.DateTimeField(null=True)
    level = models.PositiveSmallIntegerField(default=0, db_default=0)
    reason = models.TextField(blank=True, default="", db_default="", help_text="The last failure.")

    class Meta:
        db_table = "jobs_breaker"
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                name="jobs_breaker_open_is_tried",
                condition=models.Q(opened_at__isnull=True) ^ models.Q(probe_at__isnull=False),
            ),
            models.CheckConstraint(
                name="jobs_breaker_probe_ends",
                condition=models.Q(probe_token__isnull=True, probe_until__isnull=True)
                | models.Q(probe_token__isnull=False, probe_until__isnull=False, opened_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.name


class LoggedMessage(models.Model):
    """An event or command as stored. `key` names the entity whose order matters; `body` is the business contract.

    Partitioned by RANGE (published_at), which is why the key has two columns; the table is made by SQL
    in migration 0002. There is no foreign key to it: the log outlives every delivery.
    """

    pk = models.CompositePrimaryKey("published_at", "id")
    id = models.BigIntegerField()
    published_at = models.DateTimeField()
    event_id = models.TextField()
    type = models.TextField()
    key = models.TextField()
    body = models.JSONField()
    attributes = models.JSONField()

    class Meta:
        managed = False
        db_table = "jobs_message"

    def __str__(self) -> str:
        return self.event_id


class Delivery(models.Model):
    """One message in one subscription's queue.

    available  visible_at has passed
    in-flight  lease_token set, visible_at ahead
    waiting    for a retry, or delayed: lease_token null, visible_at ahead
    suspect    lease_token set, visible_at has passed: its holder fell silent

    The primary key is also the claim's window; no index has a column that a claim changes, so claims stay HOT.
    """

    pk = models.CompositePrimaryKey("subscription", "part", "id")
    subscription = models.ForeignKey(Subscription, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    part = models.SmallIntegerField()
    id = models.BigIntegerField()
    message_id = models.BigIntegerField()
    published_at = models.DateTimeField()
    event_id = models.TextField()
    key = models.TextField()
    visible_at = models.DateTimeField()
    receive_count = models.SmallIntegerField()
    lease_token = models.BigIntegerField(null=True)
    first_received_at = models.DateTimeField(null=True)
    failures = models.JSONField(null=True)

    class Meta:
        managed = False
        db_table = "jobs_delivery"

    def __str__(self) -> str:
        return f"{self.event_id} for {self.subscription_id}"


class PastDelivery(models.Model):
    """What the ledger does not say of a delivery that is gone: the receives before the last, or that it was suppressed.

    Written only where a message came again, and kept as long as the ledger. Read by its journey.
    """

    id = models.BigAutoField(primary_key=True)
    subscription_name = models.CharField(max_length=80)
    event_id = models.TextField()
    settled_at = models.DateTimeField()
    suppressed = models.BooleanField(help_text="The ledger knew the event, so it had no effect again.")
    receive_count = models.SmallIntegerField()
    first_received_at = models.DateTimeField(null=True)
    failures = models.JSONField(help_text="Each receive that failed: when, worker, class, reason.")

    class Meta:
        db_table = "jobs_past_delivery"
        indexes = (
            models.Index(name="jobs_past_delivery_event", fields=["event_id"]),
            models.Index(name="jobs_past_delivery_age", fields=["settled_at"]),
        )

    def __str__(self) -> str:
        return f"{self.event_id} for {self.subscription_name}"


class ProcessedMessage(models.Model):
    """The ledger: this consumer has applied this event. The course's three columns and primary key."""

    pk = models.CompositePrimaryKey("consumer_name", "event_id")
    consumer_name = models.TextField()
    event_id = models.TextField()
    processed_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "processed_messages"

    def __str__(self) -> str:
        return f"{self.consumer_name} {self.event_id}"
