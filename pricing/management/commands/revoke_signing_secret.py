"""`manage.py revoke_signing_secret NAME`: stop a signing secret from working, at once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from pricing.models import SigningSecret
from pricing.signing import revoke_secret


class Command(BaseCommand):
    help = "Revoke the signing secret that list_signing_secrets shows under this name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        secret = SigningSecret.objects.filter(prefix=options["prefix"]).first()
        if secret is None:
            raise CommandError(f"No signing secret has the name {options['prefix']}.")
        if not revoke_secret(secret=secret, now=timezone.now()):
            raise CommandError("That secret was revoked before.")
        self.stdout.write(f"Revoked {secret.prefix} of {secret.merchant_id}.")
