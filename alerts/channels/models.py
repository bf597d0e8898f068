"""Other ways of being told than by mail: somebody's channels, each delivery on them, and their Atom feed.

Addresses and secrets are sealed (pricing/sealing.py), the feed's token is a hash: whoever reads the database gets none.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

SWITCHED_OFF = "You switched it off."


class Channel(models.Model):
    """Where else somebody's notifications go. Switched off by its owner, by a 410, or after failing for good."""

    class Kind(models.TextChoices):
        WEBHOOK = "webhook", "Webhook"
        APPRISE = "apprise", "Chat or push service"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=10, choices=Kind)
    shown = models.CharField(max_length=120, help_text="Which it is, without what would let its reader post to it.")
    sealed_address = models.TextField()
    sealed_secret = models.TextField(blank=True, help_text="What a webhook is signed with.")
    sealed_old_secret = models.TextField(blank=True)
    old_secret_until = models.DateTimeField(null=True, help_text="Until then the old secret signs beside the new one.")
    created_at = models.DateTimeField(db_default=Now())
    told_at = models.DateTimeField(null=True, help_text="When it last took a notification.")
    retry_at = models.DateTimeField(null=True, help_text="It failed last; nothing is tried before.")
    given_up = models.PositiveSmallIntegerField(default=0, help_text="Notifications in a row that it never took.")
    off_at = models.DateTimeField(null=True)
    off_because = models.CharField(max_length=200, blank=True, help_text="In its owner's words.")

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(name="alerts_channel_live", fields=["user"], condition=Q(off_at__isnull=True)),)
        constraints = (
            models.CheckConstraint(name="alerts_channel_off", condition=Q(off_at__isnull=True) ^ ~Q(off_because="")),
            models.CheckConstraint(
                name="alerts_channel_secret", condition=Q(kind="apprise", sealed_secret="") | ~Q(sealed_secret="")
            ),
            models.CheckConstraint(
                name="alerts_channel_old_secret",
                condition=Q(sealed_old_secret="", old_secret_until__isnull=True)
                | (~Q(sealed_old_secret="") & Q(old_secret_until__isnull=False)),
            ),
        )

    def __str__(self) -> str:
        return self.shown

    @property
    def switched_off_by_owner(self) -> bool:
        return self.off_because == SWITCHED_OFF


class ChannelDelivery(models.Model):
    """One notification on one channel, for ever: the constraint says so. Without a notification it is a test."""

    class State(models.TextChoices):
        QUEUED = "queued", "on its way"
        TAKEN = "taken", "taken"
        GIVEN_UP = "given_up", "not taken, given up"
        UNWANTED = "unwanted", "not sent: no longer wanted"

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    notification = models.ForeignKey(
        "alerts.Notification", on_delete=models.CASCADE, null=True, related_name="channel_deliveries"
    )
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED, db_default="queued")
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    answer = models.CharField(max_length=120, blank=True, db_default="", help_text="What the last try came to.")
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "channel deliveries"
        constraints = (
            # One per (alert, event, channel): a notification is one per (alert, event).
            models.UniqueConstraint(name="alerts_channeldelivery_identity", fields=["channel", "notification"]),
            models.UniqueConstraint(
                name="alerts_channeldelivery_one_test",
                fields=["channel"],
                condition=Q(notification__isnull=True, state="queued"),
            ),
            models.CheckConstraint(
                name="alerts_channeldelivery_settled", condition=Q(state="queued") ^ Q(settled_at__isnull=False)
            ),
        )

    def __str__(self) -> str:
        return f"{self.channel_id} {self.notification_id}: {self.state}"


class AtomFeed(models.Model):
    """Somebody's notifications as an Atom feed, behind an address that nobody can guess; its token's SHA-256 only."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="atom_feed")
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"feed of {self.user_id}"
