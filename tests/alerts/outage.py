"""Mails that wait for a provider who is away, and time that passes.

The clock is the database's: what is to come due is moved back in its rows, as time would.
"""

from datetime import timedelta
from typing import Any

from django.db import connection

from jobs.models import Delivery
from jobs.worker import drain
from tests.cast import alert, merchant, price, wine


def mails_to_send(count: int) -> None:
    """So many alerts are met by prices of as many wines."""
    for number in range(count):
        bottle = wine(f"9{number}")
        alert("160.00", wine=bottle)
        price("154.00", of=bottle, at=merchant())
    drain(["alert-matching"])


def waiting() -> Any:
    return Delivery.objects.filter(subscription__name="notification-delivery")


def let_pass(span: timedelta) -> None:
    """Let all that waits by the database's clock come so much nearer."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_delivery SET visible_at = visible_at - %s", [span])
        cursor.execute(
            "UPDATE jobs_breaker SET probe_at = probe_at - %(span)s, opened_at = opened_at - %(span)s,"
            " last_failed_at = last_failed_at - %(span)s, probe_until = probe_until - %(span)s",
            {"span": span},
        )


def wait_for_end() -> None:
    """Every delivery and the breaker's probe come due."""
    let_pass(timedelta(days=20))
