from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from winecellar.demo.load import NotInProductionError, load_catalogue


class Command(BaseCommand):
    help = "Load the demo's wines, merchants, prices and people. Running it again adds only what is missing."

    def handle(self, **_: Any) -> None:
        try:
            loaded = load_catalogue(now=timezone.now())
        except NotInProductionError as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(
            f"Added {loaded.wines} wines, {loaded.merchants} merchants, {loaded.offers} offers with "
            f"{loaded.past_prices} past prices, {loaded.people} people and {loaded.alerts} alerts."
        )
