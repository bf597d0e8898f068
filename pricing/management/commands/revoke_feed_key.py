"""`manage.py revoke_feed_key PREFIX`: stop a feed key from working, at once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from pricing.keys import revoke_key
from pricing.models import FeedKey


class Command(BaseCommand):
    help = "Revoke the feed key with this prefix (the eight characters after wck_)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix")

    def handle(self, *args: Any, **options: Any) -> None:
        key = FeedKey.objects.filter(prefix=options["prefix"]).first()
        if key is None:
            raise CommandError(f"No feed key has the prefix {options['prefix']}.")
        if not revoke_key(key=key, now=timezone.now()):
            raise CommandError("That key was revoked before.")
        self.stdout.write(f"Revoked {key.prefix} of {key.merchant_id}.")
