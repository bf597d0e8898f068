"""`manage.py list_feed_keys`: every feed key with its merchant and whether it works; never a secret."""

from pricing.management.credentials import ListCommand
from pricing.models import FeedKey


class Command(ListCommand):
    help = "List the feed keys: prefix, merchant, state, note."
    model = FeedKey
