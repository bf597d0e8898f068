"""Say how many bottles of a wine a merchant has, and at what price: `manage.py set_stock mch_082 wn_4417 24 154.00`."""

from argparse import ArgumentParser
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from pricing.models import Merchant, Wine
from winecellar.purchases.services import set_stock


class Command(BaseCommand):
    help = "Say how many bottles of a wine a merchant has, and at what price."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("merchant")
        parser.add_argument("wine")
        parser.add_argument("bottles", type=int)
        parser.add_argument("price", help="For one bottle, such as 154.00.")
        parser.add_argument("--currency", default="USD")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            item = set_stock(
                merchant=Merchant.objects.get(pk=options["merchant"]),
                wine=Wine.objects.get(pk=options["wine"]),
                on_hand=options["bottles"],
                price=Decimal(options["price"]),
                currency=options["currency"],
                now=timezone.now(),
            )
        except (Merchant.DoesNotExist, Wine.DoesNotExist) as error:
            raise CommandError(f"There is no {error.args[0].split()[0].lower()} of that number.") from error
        except InvalidOperation as error:
            raise CommandError(f"price: {options['price']!r} is no number.") from error
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        self.stdout.write(
            f"{item}: {item.on_hand} bottles, {item.reserved} of them reserved, {item.currency} {item.price}"
        )
