"""What stands between a person and their mails: what they want no more, and an address that takes none.

Read through reachable.py, written by wishes.py and suppressions.py.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q


class MailWish(models.Model):
    """Which mails a person wants no more; without a row they get all. Pausing one alert is in the alert itself."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="mail_wish"
    )
    alerts_off_at = models.DateTimeField(null=True, blank=True, help_text="Since when no mail about alerts; empty: on.")
    digest_off_at = models.DateTimeField(null=True, blank=True, help_text="Since when no weekly mail; empty: on.")

    class Meta:
        verbose_name_plural = "mail wishes"

    def __str__(self) -> str:
        return f"mail wishes of {self.user_id}"


class Suppression(models.Model):
    """A person's address that takes no mail: it bounced for good, or its owner called a mail of ours unwanted.

    Holds for this address only, so a change of address ends it; so does the person's word that it works again.
    """

    class Why(models.TextChoices):
        BOUNCED = "bounced", "mail came back from it"
        COMPLAINED = "complained", "a mail was reported as unwanted"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="mail_suppression"
    )
    address = models.EmailField()
    why = models.CharField(max_length=10, choices=Why)
    since = models.DateTimeField()
    # The provider's name for what happened, since it says everything twice; empty where it has none.
    event_id = models.CharField(max_length=200, blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True, help_text="When the person said that it works again.")

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="alerts_suppression_lifted_later",
                condition=Q(lifted_at__isnull=True) | Q(lifted_at__gte=models.F("since")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.user_id}: {self.why}"
