"""The scheduled job `weekly-digest`: who gets one this week, and what it says. The only code that writes digests.

Guarantee: one digest for each person and week, by the schema, with the command that gets it sent, or none of both; a
run that died goes on behind the week's mark, which moves in the chunk's transaction. A chunk of people costs a fixed
number of queries. Declared in winecellar/schedule.py, which says where cellars' worths come from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone

from alerts import owners, reachable, told
from alerts.amounts import Amounts
from alerts.digest import facts
from alerts.digest.models import Digest, DigestWeek
from alerts.events import SEND_DIGEST_EMAIL
from alerts.models import Alert, Notification
from jobs.messages import NewMessage
from jobs.outbox import publish
from jobs.schedule.run import Run
from pricing.selectors import WEEK, CurrentOffer, current_offers

Worths = Callable[..., Mapping[int, facts.Worth]]  # (user ids, on=day)
Fenced = Callable[[], AbstractContextManager[Any]]


def run(run: Run, *, worths: Worths) -> None:
    """Make the digests of the week that ends with the run's slot."""
    make_digests(slot=run.scheduled_for, fenced=run.fenced, progress=run.progress, worths=worths, now=timezone.now())


def make_digests(
    *, slot: datetime, fenced: Fenced, progress: Callable[..., object], worths: Worths, now: datetime
) -> int:
    """Go on with the slot's week until everybody has been looked at; how many digests this run made."""
    monday = slot.date()
    people = get_user_model().objects.order_by("pk")
    with fenced():
        week, _ = DigestWeek.objects.get_or_create(monday=monday)
    looked_at, total, made = people.filter(pk__lte=week.done_to).count(), people.count(), 0
    while True:
        with fenced():
            # Its row is locked, so that even two runs that both believe in their lock take turns.
            week = DigestWeek.objects.select_for_update(no_key=True).get(pk=monday)
            chunk = list(people.filter(pk__gt=week.done_to).values_list("pk", flat=True)[: settings.DIGEST_CHUNK])
            if not chunk:
                return made
            made += _make(_wanting(chunk), monday=monday, slot=slot, worths=worths, now=now)
            DigestWeek.objects.filter(pk=monday).update(done_to=chunk[-1])
        looked_at += len(chunk)
        progress(looked_at, max(total, looked_at), digests=made)


def _wanting(people: Collection[int]) -> list[int]:
    """Those who can be written to, and want to be. Asked again a moment before the mail."""
    who = get_user_model().objects.filter(
        _CONFIRMED, reachable.digest_wanted(), reachable.address_works(), pk__in=people, is_active=True
    )
    return list(who.order_by("pk").values_list("pk", flat=True))


_CONFIRMED = owners.confirmed()


def _make(people: list[int], *, monday: date, slot: datetime, worths: Worths, now: datetime) -> int:
    alerts: dict[int, list[Alert]] = defaultdict(list)
    for alert in _watching(people):
        alerts[alert.user_id].append(alert)
    offers: dict[str, list[CurrentOffer]] = defaultdict(list)
    for offer in current_offers(sorted({a.wine_id for mine in alerts.values() for a in mine}), earlier=slot - WEEK):
        offers[offer.wine_id].append(offer)
    amounts = Amounts(
        {alert.currency for mine in alerts.values() for alert in mine},
        {offer.occurred_at.date() for of_wine in offers.values() for offer in of_wine},
    )
    fired, worth = _fired(people, slot), worths(people, on=monday)
    weeks = {p: _week(alerts[p], offers, amounts, fired[p], worth.get(p)) for p in people}
    digests = Digest.objects.bulk_create(
        Digest(user_id=person, monday=monday, facts=facts.kept(week), created_at=now)
        for person, week in weeks.items()
        if week.is_news
    )
    publish([NewMessage(SEND_DIGEST_EMAIL, f"digest:{digest.pk}", {"digest_id": digest.pk}) for digest in digests])
    return len(digests)


def _watching(people: Collection[int]) -> list[Alert]:
    watching = Alert.live.filter(user__in=people).exclude(state=Alert.State.PAUSED)
    return list(watching.select_related("wine").order_by("user_id", "pk"))


def _fired(people: Collection[int], slot: datetime) -> dict[int, list[facts.Fired]]:
    """By person, the newest first, what the seven days up to the slot told them."""
    found: dict[int, list[facts.Fired]] = defaultdict(list)
    rows = Notification.objects.filter(alert__user__in=people, created_at__gte=slot - WEEK, created_at__lt=slot)
    for row in rows.select_related("alert__wine").order_by("-created_at", "-pk"):
        name, merchant = told.one_line(str(row.alert.wine)), told.one_line(row.merchant_name)
        line = facts.Fired(row.alert_id, name, row.currency, row.new_price, row.target, merchant)
        found[row.alert.user_id].append(line)
    return found


def _week(
    alerts: list[Alert],
    offers: Mapping[str, list[CurrentOffer]],
    amounts: Amounts,
    fired: list[facts.Fired],
    worth: facts.Worth | None,
) -> facts.Week:
    wines = {alert.wine_id: alert.wine for alert in alerts}
    drops = [drop for wine in wines.values() if (drop := _drop(wine, offers.get(wine.pk, []))) is not None]
    close = [near for alert in alerts if (near := _close(alert, offers.get(alert.wine_id, []), amounts)) is not None]
    return facts.choose(drops=drops, fired=fired, close=close, worth=worth, lines=settings.DIGEST_LINES)


def _drop(wine: Any, offers: list[CurrentOffer]) -> facts.Drop | None:
    """Against the best price of a week ago; none where nobody offered it then. Offers come cheapest first."""
    before = min((o.earlier_price_usd for o in offers if o.earlier_price_usd is not None), default=None)
    if before is None:
        return None
    best = offers[0]
    return facts.Drop(wine.pk, told.one_line(str(wine)), before, best.price_usd, told.one_line(best.merchant_name))


def _close(alert: Alert, offers: list[CurrentOffer], amounts: Amounts) -> facts.Close | None:
    """In the alert's currency, as matching compares it; none for an alert that waits for no price."""
    if alert.state != Alert.State.ARMED or alert.target is None:
        return None
    best = next((o for o in offers if alert.merchant_id in {None, o.merchant_id}), None)
    if best is None:
        return None
    day = best.occurred_at.date()
    now = amounts.of(alert.currency, best.price_usd, day, best.native_price, best.native_currency)
    if now is None:
        return None
    return facts.Close(alert.pk, told.one_line(str(alert.wine)), alert.currency, now, alert.target)
