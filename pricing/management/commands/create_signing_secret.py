"""`manage.py create_signing_secret mch_… [--for shopify|woocommerce] [--given] [--note TEXT] [--expires-in-days N]`."""

import sys
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from pricing.management.credentials import CreateCommand
from pricing.models import Merchant, SigningSecret
from pricing.signing import create_secret


class Command(CreateCommand):
    help = "Create a secret with which a merchant signs its requests, and print it; it is not shown again."
    called = "secret"
    shown = "This secret is shown only now:"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--given", action="store_true", help="The sender has made a secret: read it from standard input."
        )
        parser.add_argument("--for", dest="kind", choices=SigningSecret.Kind.values, default="standard")

    def make(self, *, merchant: Merchant, now: datetime, expires_at: datetime | None, **options: Any) -> str | None:
        given = sys.stdin.readline().strip() if options["given"] else None
        kept, text = create_secret(
            merchant=merchant, note=options["note"], now=now, expires_at=expires_at, text=given, kind=options["kind"]
        )
        if given is None:
            return text
        self.stdout.write(f"Kept as {kept.prefix}.")
        return None
