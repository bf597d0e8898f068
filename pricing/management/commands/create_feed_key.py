"""`manage.py create_feed_key mch_… [--note TEXT] [--expires-in-days N]`: make a merchant's feed key, print it once."""

from datetime import datetime
from typing import Any

from pricing.keys import create_key
from pricing.management.credentials import CreateCommand
from pricing.models import Merchant


class Command(CreateCommand):
    help = "Create a feed key for a merchant and print it; it cannot be shown again."
    called = "key"
    shown = "This key is shown only now; we keep no copy of it:"

    def make(self, *, merchant: Merchant, now: datetime, expires_at: datetime | None, **options: Any) -> str:
        return create_key(merchant=merchant, note=options["note"], now=now, expires_at=expires_at)[1]
