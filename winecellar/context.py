"""What every page may say: the promise's figures, from the settings."""

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, object]:
    """`promise_minutes` (int) and `promise`, the sentence under every list of alerts, verbatim from the course."""
    minutes = int(settings.ALERT_PROMISE.total_seconds() // 60)
    promise = f"Alert active. We check prices continuously; alerts arrive within {minutes} minutes of a price change."
    return {"promise_minutes": minutes, "promise": promise}
