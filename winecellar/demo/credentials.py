"""A feed key for each of the demo's merchants, made anew for each run; those of earlier runs stop working.

Called by orchestra.py. The keys' texts are kept in memory only.
"""

from datetime import datetime

from django.db import transaction

from pricing.keys import create_key, live, revoke_key
from pricing.models import FeedKey, Merchant
from winecellar.demo import catalogue

NOTE = "demo"


def fresh_keys(*, now: datetime) -> dict[str, str]:
    """Merchant id → key. Raises TooManyKeysError if somebody gave a merchant as many keys as it may have."""
    keys: dict[str, str] = {}
    with transaction.atomic():
        for merchant in Merchant.objects.filter(pk__in=[m.id for m in catalogue.MERCHANTS]):
            for old in FeedKey.objects.filter(live(now), merchant=merchant, note=NOTE):
                revoke_key(key=old, now=now)
            _, keys[merchant.pk] = create_key(merchant=merchant, note=NOTE, now=now)
    return keys
