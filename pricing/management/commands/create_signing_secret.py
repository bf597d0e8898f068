"""`manage.py create_signing_secret mch_… [--for shopify|woocommerce] [--given] [--note TEXT] [--expires-in-days N]`."""

import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from pricing.keys import TooManyKeysError
from pricing.models import Merchant, SigningSecret
from pricing.signing import create_secret


class Command(BaseCommand):
    help = "Create a secret with which a merchant signs its requests, and print it; it is not shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument(
            "--given", action="store_true", help="The sender has made a secret: read it from standard input."
        )
        parser.add_argument("--for", dest="kind", choices=SigningSecret.Kind.values, default="standard")
        parser.add_argument("--note", default="", help="Where the secret is used, for whoever reads the list.")
        parser.add_argument("--expires-in-days", type=int, metavar="DAYS", help="Without it the secret never expires.")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        merchant = Merchant.objects.filter(pk=options["merchant_id"]).first()
        if merchant is None:
            raise CommandError(f"No merchant has the id {options['merchant_id']}.")
        days = options["expires_in_days"]
        if days is not None and days < 1:
            raise CommandError("A secret lives for at least one day.")
        expires_at = None if days is None else now + timedelta(days=days)
        given = sys.stdin.readline().strip() if options["given"] else None
        try:
            kept, text = create_secret(
                merchant=merchant,
                note=options["note"],
                now=now,
                expires_at=expires_at,
                text=given,
                kind=options["kind"],
            )
        except (TooManyKeysError, ValueError) as error:
            raise CommandError(str(error)) from None
        if given is not None:
            self.stdout.write(f"Kept as {kept.prefix}.")
            return
        self.stderr.write("This secret is shown only now:")
        self.stdout.write(text)
