"""Letters to decide about, and staff who may each do one thing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from jobs.dead_letters.fingerprint import fingerprint
from jobs.models import DeadLetter
from tests.cast import with_app
from winecellar.accounts.models import User


def letter(number: int = 1, **fields: Any) -> DeadLetter:
    """One dead letter of the course's sort, as if a worker had buried it."""
    now = timezone.now()
    facts: dict[str, Any] = {
        "subscription_name": "price-history",
        "message_id": number,
        "event_id": f"evt_{number}",
        "message_type": "wine.price_changed",
        "key": f"wn_{number}",
        "body": {"event_id": f"evt_{number}", "wine_id": f"wn_{number}", "merchant_id": "mch_082", "currency": "USD "},
        "attributes": {},
        "cause": "permanent",
        "error_class": "PermanentError",
        "reason": "new_price_usd required; currency 'USD ' not ISO-4217",
        "failures": [
            {"receive": 1, "at": "2026-03-14T09:12:04Z", "worker": "host:1", "error_class": "E", "reason": "r"}
        ],
        "receive_count": 1,
        "published_at": now - timedelta(minutes=20),
        "first_received_at": now - timedelta(minutes=20),
        "dead_lettered_at": now - timedelta(minutes=16),
        "waits_from": now - timedelta(minutes=16),
        "origin": "mch_082",
        **fields,
    }
    facts.setdefault(
        "fingerprint",
        fingerprint(facts["subscription_name"], facts["message_type"], facts["error_class"], facts["reason"]),
    )
    return DeadLetter.objects.create(**facts)


Staff = Callable[..., Client]


@pytest.fixture
def staff(db: None) -> Staff:
    """A member of the staff who may look, and do what is named."""

    def sign_in(*may: str) -> Client:
        person = User.objects.create_user(
            f"{'-'.join(may) or 'dora'}@winecellar.example", "claret-and-port", is_staff=True
        )
        names = [f"view_{model}" for model in ("deadletter", "redrive", "auditentry")]
        person.user_permissions.set(
            Permission.objects.filter(
                content_type__app_label="jobs", codename__in=[*names, *(f"{one}_deadletter" for one in may)]
            )
        )
        client = Client()
        client.force_login(with_app(person))
        return client

    return sign_in
