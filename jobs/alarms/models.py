"""Incidents: what was or is wrong, from when to when, who has seen it, who was told. Written by incidents.py and
notices.py alone."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Incident(models.Model):
    """One alarm about one subject, from opening to closing. While it is open there is no second one.

    suspected     the condition holds, but not for long enough yet: `opened_at` is null
    open          opened_at set; people were told once
    acknowledged  somebody has seen it; it stays open until the condition is over
    closed        the condition was over for long enough
    """

    class Severity(models.TextChoices):
        WARN = "warn", "warning"
        PAGE = "page", "page"

    id = models.BigAutoField(primary_key=True)
    alarm = models.CharField(max_length=60)
    subject = models.TextField(help_text="The job, subscription or process it is about.")
    severity = models.CharField(max_length=4, choices=Severity)
    summary = models.TextField(help_text="What is true, with its figures, as of the last look.")
    since = models.DateTimeField(help_text="When the condition was first seen.")
    last_true_at = models.DateTimeField(help_text="When the condition was last seen.")
    opened_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.TextField(blank=True)
    closed_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True, help_text="When the mail about it was handed over.")
    telling_until = models.DateTimeField(null=True, help_text="Until then somebody is handing it over.")

    class Meta:
        db_table = "jobs_incident"
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                name="jobs_incident_one_open", fields=("alarm", "subject"), condition=Q(closed_at=None)
            ),
            models.CheckConstraint(
                name="jobs_incident_in_order",
                condition=(Q(opened_at=None) | Q(opened_at__gte=models.F("since")))
                & (Q(closed_at=None) | Q(opened_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="jobs_incident_acknowledged",
                condition=Q(acknowledged_at=None, acknowledged_by="")
                | (Q(acknowledged_at__isnull=False, opened_at__isnull=False) & ~Q(acknowledged_by="")),
            ),
            models.CheckConstraint(name="jobs_incident_told", condition=Q(told_at=None) | Q(opened_at__isnull=False)),
        )
        indexes = (
            models.Index(name="jobs_incident_untold", fields=["opened_at"], condition=Q(told_at=None, closed_at=None)),
        )

    def __str__(self) -> str:
        return f"{self.alarm}: {self.subject}"

    @property
    def state(self) -> str:
        if self.closed_at:
            return "closed"
        if self.acknowledged_at:
            return "acknowledged"
        return "open" if self.opened_at else "suspected"


class Notice(models.Model):
    """One turn of an incident, to be told one way; told once, or given up with a reason in the log."""

    class Turn(models.TextChoices):
        OPENED = "opened", "opened"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        CLOSED = "closed", "closed"

    class Way(models.TextChoices):
        MAIL = "mail", "mail"
        WEBHOOK = "webhook", "webhook"

    id = models.BigAutoField(primary_key=True)
    incident = models.ForeignKey(Incident, models.CASCADE, related_name="notices", db_index=False)
    turn = models.CharField(max_length=12, choices=Turn)
    way = models.CharField(max_length=7, choices=Way)
    at = models.DateTimeField(help_text="When the incident turned.")
    told_at = models.DateTimeField(null=True)
    telling_until = models.DateTimeField(null=True, help_text="Until then somebody is telling it.")

    class Meta:
        db_table = "jobs_notice"
        ordering = ("id",)
        constraints = (models.UniqueConstraint(name="jobs_notice_once", fields=("incident", "turn", "way")),)
        indexes = (models.Index(name="jobs_notice_untold", fields=["id"], condition=models.Q(told_at=None)),)

    def __str__(self) -> str:
        return f"{self.incident}: {self.turn} by {self.way}"
