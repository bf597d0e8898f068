"""Reads about somebody's alerts, for the pages. Changes nothing; each function says how many queries it makes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import OrderBy

from alerts import sparklines, words
from alerts.amounts import Amounts
from alerts.models import Alert, Decision, Notification
from alerts.sparklines import Sparkline
from pricing.selectors import CurrentOffer, best_offer, cheapest_offers

PAGE_SIZE = 24
LOG_LENGTH = 100
# The bar of a card is full at this distance. Most targets lie within it; what lies beyond is far away in any case.
FULL_BAR_PERCENT = 30
# What a list can be narrowed to, in the order of the page, by the word in the address.
SHOWN = {
    "all": "All",
    "checking": "Checking",
    "watching": "Watching",
    "met": "Met",
    "snoozed": "Snoozed",
    "paused": "Paused",
    "expired": "Expired",
    "deleted": "Deleted",
}
SORTS = {"newest": "Newest first", "told": "Last told first", "wine": "By wine"}


@dataclass(frozen=True, slots=True)
class AlertView:
    """An alert beside the best price now among the merchants that it asks, in its own currency."""

    alert: Alert
    offer: CurrentOffer | None
    price: Decimal | None
    standing: str
    spark: Sparkline | None = None

    @property
    def chip(self) -> str:
        """The class of its chip: a colour only for what is going on."""
        calm = ("Deleted", "Expired", "Paused", "Snoozed")
        if self.standing.startswith(calm):
            return "calm"
        return "pending" if self.standing == "Address not confirmed" else self.alert.state

    @property
    def waits_for(self) -> str:
        return words.waits_for(self.alert)

    @property
    def above(self) -> Decimal | None:
        """How far the price has to fall; zero or less when it is there."""
        return None if self.price is None or self.alert.target is None else self.price - self.alert.target

    @property
    def is_met(self) -> bool:
        return self.above is not None and self.above <= 0

    @property
    def percent_to_fall(self) -> Decimal | None:
        return None if self.above is None or not self.price else self.above / self.price * 100

    @property
    def bar(self) -> int | None:
        """The distance as a length from 0 to 100."""
        part = self.percent_to_fall
        return None if part is None else round(min(max(part / FULL_BAR_PERCENT, Decimal(0)), Decimal(1)) * 100)

    @property
    def drop(self) -> Decimal | None:
        """How many per cent the price is below what it was when the alert was set; below zero where it rose."""
        then = self.alert.price_when_created
        return None if self.price is None or not then else (then - self.price) / then * 100


@dataclass(frozen=True, slots=True)
class AlertPage:
    """A page of a list: `next_after` is the alert that the next begins behind, `counts` how many there are of each."""

    views: list[AlertView]
    next_after: int | None
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One event as one alert saw it: what was decided, and the mail that followed, if any."""

    at: datetime
    price: Decimal | None
    merchant_name: str
    decision: Decision | None
    mail: Notification | None

    @property
    def event_id(self) -> str:
        told = self.decision or self.mail
        return told.event_id if told else ""


def list_alerts(*, user_id: int, confirmed: bool, shown: str, sort: str, after: int | None, now: datetime) -> AlertPage:
    """A page of somebody's alerts with the prices now: 4 queries, one more behind the first page or for other money.

    A keyset: however many alerts there are, and whatever happens meanwhile, a page costs the same.
    """
    mine = Alert.objects.filter(user_id=user_id)
    rows = mine.filter(_shown(shown, now)).select_related("wine", "merchant").order_by(*_order(sort))
    if after is not None:
        rows = rows.filter(_behind(mine.filter(pk=after).select_related("wine").first(), sort))
    alerts = list(rows[: PAGE_SIZE + 1])
    following = alerts[PAGE_SIZE - 1].pk if len(alerts) > PAGE_SIZE else None
    return AlertPage(
        _views(alerts[:PAGE_SIZE], confirmed=confirmed, now=now, spark=True), following, _counts(mine, now)
    )


def get_alert(*, user_id: int, pk: int, confirmed: bool, now: datetime) -> AlertView:
    """One alert of this person, deleted or not: 2 queries. Raises Alert.DoesNotExist, for others' too."""
    alert = Alert.objects.select_related("wine", "merchant").get(user_id=user_id, pk=pk)
    return _views([alert], confirmed=confirmed, now=now)[0]


def alerts_named(*, user_id: int, ids: list[int], confirmed: bool, now: datetime) -> list[AlertView]:
    """Those of these that are this person's and not deleted: 2 queries."""
    alerts = Alert.live.filter(user_id=user_id, pk__in=ids).select_related("wine", "merchant").order_by("-pk")
    return _views(list(alerts), confirmed=confirmed, now=now)


def alerts_on_wine(*, user_id: int | None, wine_id: str, confirmed: bool, now: datetime) -> list[AlertView]:
    """This person's alerts on one wine without its prices, the highest target first: 1 query; none for a stranger."""
    if user_id is None:
        return []
    alerts = Alert.live.filter(user_id=user_id, wine_id=wine_id).select_related("wine", "merchant")
    ordered = alerts.order_by(F("target").desc(nulls_last=True), "-pk")
    return [AlertView(each, None, None, words.standing(each, confirmed=confirmed, now=now)) for each in ordered]


def log_of(alert: Alert) -> list[LogEntry]:
    """What happened to this alert, newest first, at most LOG_LENGTH entries: 2 queries."""
    decisions = {row.event_id: row for row in Decision.objects.filter(alert=alert)[:LOG_LENGTH]}
    mails = {row.event_id: row for row in Notification.objects.filter(alert=alert)[:LOG_LENGTH]}
    entries = [_entry(decisions.get(event_id), mails.get(event_id)) for event_id in decisions | mails]
    return sorted(entries, key=lambda entry: entry.at, reverse=True)[:LOG_LENGTH]


def _entry(decision: Decision | None, mail: Notification | None) -> LogEntry:
    if decision is not None:
        return LogEntry(decision.decided_at, decision.price, decision.merchant_name, decision, mail)
    assert mail is not None
    return LogEntry(mail.created_at, mail.new_price, mail.merchant_name, None, mail)


def _views(alerts: list[Alert], *, confirmed: bool, now: datetime, spark: bool = False) -> list[AlertView]:
    wine_ids = {alert.wine_id for alert in alerts}
    offers = cheapest_offers(wine_ids) if alerts else []
    amounts = Amounts(
        {alert.currency for alert in alerts}, {offer.occurred_at.astimezone(UTC).date() for offer in offers}
    )
    seen = sparklines.observations(wine_ids, now=now) if spark else {}
    views = []
    for alert in alerts:
        offer = best_offer(offers, wine_id=alert.wine_id, merchant_id=alert.merchant_id)
        views.append(
            AlertView(
                alert=alert,
                offer=offer,
                price=_in_its_money(alert, offer, amounts),
                standing=words.standing(alert, confirmed=confirmed, now=now),
                spark=sparklines.draw(seen.get(alert.wine_id, ()), merchant_id=alert.merchant_id, now=now),
            )
        )
    return views


def _in_its_money(alert: Alert, offer: CurrentOffer | None, amounts: Amounts) -> Decimal | None:
    if offer is None:
        return None
    day = offer.occurred_at.astimezone(UTC).date()
    return amounts.of(alert.currency, offer.price_usd, day, offer.native_price, offer.native_currency)


def _shown(shown: str, now: datetime) -> Q:
    """The alerts of one of SHOWN; each not deleted one that waits or sleeps is in exactly one but “all”."""
    live = Q(deleted_at__isnull=True)
    over = Q(expires_at__isnull=False, expires_at__lte=now)
    asleep = Q(snoozed_until__isnull=False, snoozed_until__gt=now) | Q(snoozed_until_rise=True)
    awake = live & ~over & ~asleep
    return {
        "all": live,
        "checking": awake & Q(state=Alert.State.PENDING),
        "watching": awake & Q(state=Alert.State.ARMED),
        "met": awake & Q(state=Alert.State.FIRED),
        "snoozed": live & ~over & asleep,
        "paused": live & ~over & Q(state=Alert.State.PAUSED),
        "expired": live & over,
        "deleted": ~live,
    }[shown]


def _counts(mine: QuerySet[Alert], now: datetime) -> dict[str, int]:
    """How many alerts each of SHOWN has: 1 query over one person's rows."""
    rows = mine.order_by().values_list("state", "deleted_at", "expires_at", "snoozed_until", "snoozed_until_rise")
    counts: Counter[str] = Counter()
    names = {Alert.State.PENDING: "checking", Alert.State.ARMED: "watching", Alert.State.FIRED: "met"}
    for state, deleted_at, expires_at, snoozed_until, until_rise in rows:
        if deleted_at is not None:
            counts["deleted"] += 1
            continue
        counts["all"] += 1
        if expires_at is not None and expires_at <= now:
            counts["expired"] += 1
        elif until_rise or (snoozed_until is not None and snoozed_until > now):
            counts["snoozed"] += 1
        else:
            counts[names.get(Alert.State(state), "paused")] += 1
    return dict(counts)


def _order(sort: str) -> tuple[str | OrderBy, ...]:
    if sort == "wine":
        return ("wine__name", "wine_id", "-pk")
    return (F("last_notified_at").desc(nulls_last=True), "-pk") if sort == "told" else ("-pk",)


def _behind(last: Alert | None, sort: str) -> Q:
    """What comes behind an alert in this order; everything if it is gone."""
    if last is None:
        return Q()
    older = Q(pk__lt=last.pk)
    if sort == "wine":
        same = Q(wine__name=last.wine.name)
        return Q(wine__name__gt=last.wine.name) | same & (Q(wine_id__gt=last.wine_id) | Q(wine_id=last.wine_id) & older)
    if sort == "told":
        told = last.last_notified_at
        if told is None:
            return Q(last_notified_at__isnull=True) & older
        return Q(last_notified_at__isnull=True) | Q(last_notified_at__lt=told) | Q(last_notified_at=told) & older
    return older
