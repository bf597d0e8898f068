"""`manage.py create_feed_key mch_… [--note TEXT] [--expires-in-days N]`: make a merchant's feed key, print it once."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from pricing.keys import TooManyKeysError, create_key
from pricing.models import Merchant


class Command(BaseCommand):
    help = "Create a feed key for a merchant and print it; it cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("--note", default="", help="Where the key is used, for whoever reads the list.")
        parser.add_argument("--expires-in-days", type=int, metavar="DAYS", help="Without it the key never expires.")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        merchant = Merchant.objects.filter(pk=options["merchant_id"]).first()
        if merchant is None:
            raise CommandError(f"No merchant has the id {options['merchant_id']}.")
        days = options["expires_in_days"]
        if days is not None and days < 1:
            raise CommandError("A key lives for at least one day.")
        expires_at = None if days is None else now + timedelta(days=days)
        try:
            _, text = create_key(merchant=merchant, note=options["note"], now=now, expires_at=expires_at)
        except TooManyKeysError as error:
            raise CommandError(str(error)) from None
        self.stderr.write("This key is shown only now; we keep no copy of it:")
        self.stdout.write(text)
