"""`manage.py reseal_channels`: after SECRET_KEY was replaced, before the old one leaves SECRET_KEY_FALLBACKS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from alerts.channels.services import reseal_all


class Command(BaseCommand):
    help = "Seal every channel's address and secrets with today's SECRET_KEY."

    def handle(self, *args: Any, **options: Any) -> None:
        done, unreadable = reseal_all()
        self.stdout.write(f"resealed: {done}")
        if unreadable:
            raise CommandError(
                f"{unreadable} cannot be read with any key in SECRET_KEY and SECRET_KEY_FALLBACKS: "
                "name the key they were sealed with. Else they are switched off at their next notification."
            )
