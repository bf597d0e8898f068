from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from pricing.models import FeedAnswer


class Command(BaseCommand):
    help = "Remove the stored answers of feed requests that no merchant will retry any more."

    def handle(self, **_: Any) -> None:
        before = timezone.now() - settings.FEED_ANSWER_RETENTION
        removed, _by_model = FeedAnswer.objects.filter(created_at__lt=before).delete()
        self.stdout.write(f"answers removed: {removed}")
