"""The weekly digests: one for each person and week, for ever; and how far a week has got. weekly.py makes them."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class DigestWeek(models.Model):
    """A week's progress: a run that stopped goes on behind its mark."""

    monday = models.DateField(primary_key=True)
    done_to = models.BigIntegerField(default=0, help_text="People up to this id have been looked at.")

    def __str__(self) -> str:
        return f"week of {self.monday}"


class Digest(models.Model):
    """What one person's week came to. Carries all that the mail says, so that it reads the same however late it goes.

    People whose week held nothing have none.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "on its way"
        SENT = "sent", "handed to the mail server"
        REFUSED = "refused", "not sent: the address takes no mail"
        UNWANTED = "unwanted", "not sent: no longer wanted"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="digests", db_index=False)
    monday = models.DateField(help_text="The digest tells of the week before this day.")
    facts = models.JSONField(help_text="See facts.py.")
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-monday",)
        constraints = (
            models.UniqueConstraint(name="alerts_digest_identity", fields=["user", "monday"]),
            models.CheckConstraint(
                name="alerts_digest_settled", condition=Q(state="queued") ^ Q(settled_at__isnull=False)
            ),
        )

    def __str__(self) -> str:
        return f"{self.user_id} {self.monday}: {self.state}"
