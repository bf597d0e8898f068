"""`manage.py list_feed_keys`: every feed key with its merchant and whether it works; never a secret."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from pricing.keys import state
from pricing.models import FeedKey


class Command(BaseCommand):
    help = "List the feed keys: prefix, merchant, state, note."

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        for key in FeedKey.objects.order_by("merchant_id", "created_at"):
            line = f"{key.prefix}  {key.merchant_id:<20} {state(key, now=now):<28} {key.note}"
            self.stdout.write(line.rstrip())
