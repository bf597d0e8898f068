"""What the commands of feed keys and of signing secrets have in common: making one, listing them, revoking one."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from pricing.keys import TooManyKeysError, state
from pricing.models import FeedKey, Merchant, SigningSecret

Credential = FeedKey | SigningSecret


class CreateCommand(BaseCommand):
    """`called` is what it makes, in words; `shown` what is said before its text. Subclasses say how it is made."""

    called: str
    shown: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("--note", default="", help=f"Where the {self.called} is used, for whoever reads the list.")
        parser.add_argument(
            "--expires-in-days", type=int, metavar="DAYS", help=f"Without it the {self.called} never expires."
        )

    def make(self, *, merchant: Merchant, now: datetime, expires_at: datetime | None, **options: Any) -> str | None:
        """Make it; its text if that is to be shown, which is only now."""
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        merchant = Merchant.objects.filter(pk=options["merchant_id"]).first()
        if merchant is None:
            raise CommandError(f"No merchant has the id {options['merchant_id']}.")
        days = options["expires_in_days"]
        if days is not None and days < 1:
            raise CommandError(f"A {self.called} lives for at least one day.")
        expires_at = None if days is None else now + timedelta(days=days)
        try:
            text = self.make(merchant=merchant, now=now, expires_at=expires_at, **options)
        except (TooManyKeysError, ValueError) as error:
            raise CommandError(str(error)) from None
        if text is not None:
            self.stderr.write(self.shown)
            self.stdout.write(text)


class ListCommand(BaseCommand):
    model: type[Credential]

    def of_its_own(self, credential: Any) -> str:
        """What is told of it beside merchant, state and note."""
        return ""

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        for each in self.model._default_manager.order_by("merchant_id", "created_at"):
            works = f"{state(each, now=now):<28}"
            line = f"{each.prefix}  {each.merchant_id:<20} {self.of_its_own(each)}{works} {each.note}"
            self.stdout.write(line.rstrip())


class RevokeCommand(BaseCommand):
    """`named` is what its prefix is to the one who types it: a prefix, or a name."""

    model: type[Credential]
    called: str
    named: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", metavar=self.named.upper())

    def handle(self, *args: Any, **options: Any) -> None:
        found = self.model._default_manager.filter(prefix=options["prefix"]).first()
        if found is None:
            raise CommandError(f"No {self.called} has the {self.named} {options['prefix']}.")
        if not self.stop(found, timezone.now()):
            raise CommandError(f"That {self.called.split()[-1]} was revoked before.")
        self.stdout.write(f"Revoked {found.prefix} of {found.merchant_id}.")

    def stop(self, credential: Any, now: datetime) -> bool:
        """Stop it from working; False when it was stopped before."""
        raise NotImplementedError
