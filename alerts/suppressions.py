"""Addresses that take no mail: learnt from the provider, shown to their person, ended by their word or another address.

Guarantee: what the provider says twice, late, or about an address that is nobody's changes nothing. Called by
bounces.py, by delivery when a recipient is refused, by the page on which a person says that the address works, and by
the admin.
"""

from __future__ import annotations

from datetime import datetime

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest

from alerts.mail_models import Suppression

log = structlog.get_logger(__name__)


class TooSoonError(Exception):
    """The person said so a short while ago, and mail came back again."""


def suppress(*, address: str, why: Suppression.Why, at: datetime, event_id: str = "") -> bool:
    """Send no more mail about alerts, nor the weekly one, to this address; whether that is news. `at`: since when."""
    person = get_user_model().objects.filter(email=address.strip().lower()).first()
    if person is None:
        log.info("suppression.of_nobody", why=why.value)
        return False
    with transaction.atomic():
        facts = {"address": person.email, "why": why, "since": at, "event_id": event_id[:200], "lifted_at": None}
        known, made = Suppression.objects.get_or_create(pk=person.pk, defaults=facts)
        if not made:
            known = Suppression.objects.select_for_update().get(pk=person.pk)
            if known.address != person.email:
                facts["lift_again_at"] = None
            elif not _is_news(known, at, event_id):
                return False
            Suppression.objects.filter(pk=person.pk).update(**facts)
    log.warning("address.suppressed", user_id=person.pk, why=why.value)
    return True


def lift(*, person: AbstractBaseUser, now: datetime) -> bool:
    """The person says that the address works; whether there was anything to lift. Raises TooSoonError."""
    with transaction.atomic():
        known = Suppression.objects.select_for_update().filter(pk=person.pk, lifted_at=None).first()
        if known is None:
            return False
        if known.lift_again_at and now < known.lift_again_at:
            raise TooSoonError
        Suppression.objects.filter(pk=person.pk).update(
            lifted_at=max(now, known.since), lift_again_at=now + settings.ADDRESS_WORKS_EVERY
        )
    log.info("address.works_again", user_id=person.pk)
    return True


def lift_for(*, user_id: int, by: str, now: datetime) -> bool:
    """Somebody of the staff knows that it works; whether there was anything to lift. As often as they know it."""
    lifted = Suppression.objects.filter(pk=user_id, lifted_at=None).update(lifted_at=Greatest(Value(now), F("since")))
    if lifted:
        log.info("address.lifted", user_id=user_id, by=by)
    return bool(lifted)


def suppression_of(person: AbstractBaseUser) -> Suppression | None:
    """What stands between this person and their mail, if anything does. One query."""
    return Suppression.objects.filter(pk=person.pk, address=person.email, lifted_at=None).first()  # type: ignore[attr-defined]


def _is_news(known: Suppression, at: datetime, event_id: str) -> bool:
    if event_id and event_id == known.event_id:
        return False
    return known.lifted_at is not None and at > known.lifted_at
