"""What is said of wines changes here: `describe` tells whoever keeps a copy. Whoever writes rows of Wine calls it.

Guarantee: the fact is committed with the change of which it tells, or not at all.
"""

from collections.abc import Iterable
from datetime import datetime

from jobs import outbox
from jobs.messages import NewMessage, new_event_id
from pricing.events import WINE_DESCRIBED, written
from pricing.models import Wine


def describe(*, wines: Iterable[Wine], now: datetime) -> None:
    """Publish that these wines were entered, or that what is said of them changed; in the caller's transaction."""
    messages = []
    for wine in sorted(wines, key=lambda each: each.pk):
        event_id = new_event_id()
        body = {
            "event_id": event_id,
            "type": WINE_DESCRIBED,
            "occurred_at": written(now),
            "wine_id": wine.pk,
            "wine_name": wine.full_name,
        }
        messages.append(NewMessage(type=WINE_DESCRIBED, key=wine.pk, body=body, event_id=event_id))
    outbox.publish(messages)
