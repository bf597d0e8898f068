"""`manage.py revoke_feed_key PREFIX`: stop a feed key from working, at once."""

from datetime import datetime

from pricing.keys import revoke_key
from pricing.management.credentials import RevokeCommand
from pricing.models import FeedKey


class Command(RevokeCommand):
    help = "Revoke the feed key with this prefix (the eight characters after wck_)."
    model = FeedKey
    called, named = "feed key", "prefix"

    def stop(self, credential: FeedKey, now: datetime) -> bool:
        return revoke_key(key=credential, now=now)
