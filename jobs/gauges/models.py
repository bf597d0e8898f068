"""What the gauges remember. Written by census.py and store.py alone; small, and kept for settings.GAUGE_RETENTION.

jobs_census       how each partition stood when it was last counted
jobs_sampler      one row: when that was, and what it cost
jobs_minute       one row per minute and partition: what came, what was done, how it stood
jobs_occurrence   one row per minute of whatever else is counted by name: ages of what was applied, errors, types
"""

from __future__ import annotations

from django.db import models


class PartitionCount(models.Model):
    """One partition at the last count. Times are null where there is nothing that they could be about."""

    pk = models.CompositePrimaryKey("subscription_id", "part")
    subscription_id = models.SmallIntegerField()
    part = models.SmallIntegerField()
    depth = models.BigIntegerField(help_text="Everything unacked.")
    in_flight = models.BigIntegerField()
    suspect = models.BigIntegerField(help_text="Handed out to somebody who fell silent.")
    retrying = models.BigIntegerField(help_text="Handed out before, and waiting to be again.")
    delayed = models.BigIntegerField(help_text="Never handed out, since it is not to be yet.")
    unreceived = models.BigIntegerField(help_text="Never handed out, and could be.")
    most_receives = models.SmallIntegerField()
    oldest = models.DateTimeField(null=True, help_text="When the oldest was published, whatever happened to it since.")
    oldest_unreceived = models.DateTimeField(null=True)
    due = models.DateTimeField(null=True, help_text="Since when the one that waits longest could have been handled.")

    class Meta:
        db_table = "jobs_census"

    def __str__(self) -> str:
        return f"{self.subscription_id}/{self.part}: {self.depth}"


class Sampler(models.Model):
    """The only row says when the census was taken, and up to when arrivals are counted from the log."""

    id = models.SmallIntegerField(primary_key=True)
    counted_at = models.DateTimeField()
    took = models.DurationField()
    arrivals_until = models.DateTimeField()

    class Meta:
        db_table = "jobs_sampler"
        constraints = (models.CheckConstraint(name="jobs_sampler_one", condition=models.Q(id=1)),)

    def __str__(self) -> str:
        return f"counted {self.counted_at}"


class Minute(models.Model):
    """One partition in one minute. What workers and sampler add to it they add up; a depth is the minute's last."""

    pk = models.CompositePrimaryKey("minute", "subscription_id", "part")
    minute = models.DateTimeField()
    subscription_id = models.SmallIntegerField()
    part = models.SmallIntegerField()
    arrived = models.BigIntegerField(db_default=0)
    received = models.BigIntegerField(db_default=0)
    acked = models.BigIntegerField(db_default=0)
    retried = models.BigIntegerField(db_default=0)
    buried = models.BigIntegerField(db_default=0)
    depth = models.BigIntegerField(null=True, help_text="Null: nobody counted in this minute.")
    due_seconds = models.FloatField(null=True, help_text="How long the one that waited longest did.")

    class Meta:
        db_table = "jobs_minute"

    def __str__(self) -> str:
        return f"{self.minute} {self.subscription_id}/{self.part}"


class Occurrence(models.Model):
    """How often something happened in a subscription in a minute; subscription 0: in none."""

    pk = models.CompositePrimaryKey("kind", "minute", "subscription_id", "name")
    kind = models.CharField(max_length=20)
    minute = models.DateTimeField()
    subscription_id = models.SmallIntegerField()
    name = models.TextField()
    count = models.BigIntegerField()

    class Meta:
        db_table = "jobs_occurrence"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.count}"
