"""`manage.py reseal_second_factors`: after SECRET_KEY was replaced, before the old one leaves SECRET_KEY_FALLBACKS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from winecellar.accounts.second_factor import reseal_all


class Command(BaseCommand):
    help = "Seal the secrets of all second factors with today's SECRET_KEY."

    def handle(self, **_: Any) -> None:
        done, unreadable = reseal_all()
        self.stdout.write(f"resealed: {done}")
        if unreadable:
            raise CommandError(
                f"{unreadable} cannot be read with any key in SECRET_KEY and SECRET_KEY_FALLBACKS: "
                "name the key they were sealed with, or remove those second factors in the admin."
            )
