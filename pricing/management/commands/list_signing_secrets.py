"""`manage.py list_signing_secrets`: every signing secret with its merchant and whether it works; never itself."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from pricing.keys import state
from pricing.models import SigningSecret


class Command(BaseCommand):
    help = "List the signing secrets: our name for it, merchant, what for, state, note."

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        for secret in SigningSecret.objects.order_by("merchant_id", "created_at"):
            works = state(secret, now=now)
            line = f"{secret.prefix}  {secret.merchant_id:<20} {secret.kind:<12} {works:<28} {secret.note}"
            self.stdout.write(line.rstrip())
