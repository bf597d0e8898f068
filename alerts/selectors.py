"""Reads about somebody's alerts, for the pages. Changes nothing; each function says how many queries it makes."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.core.paginator import Page, Paginator

from alerts.models import Alert, Decision, Notification
from pricing.selectors import CurrentOffer, best_offer, cheapest_offers

PAGE_SIZE = 24
LOG_LENGTH = 100
# The bar of a card is full at this distance. Most targets lie within it; what lies beyond is far away in any case.
FULL_BAR_PERCENT = 30


@dataclass(frozen=True, slots=True)
class AlertView:
    """An alert beside the best price now among the merchants that it asks."""

    alert: Alert
    offer: CurrentOffer | None

    @property
    def above_usd(self) -> Decimal | None:
        """How far the price has to fall; zero or less when it is there."""
        return None if self.offer is None else self.offer.price_usd - self.alert.target

    @property
    def is_met(self) -> bool:
        return self.above_usd is not None and self.above_usd <= 0

    @property
    def percent_to_fall(self) -> Decimal | None:
        return None if self.offer is None else (self.offer.price_usd - self.alert.target) / self.offer.price_usd * 100

    @property
    def bar(self) -> int | None:
        """The distance as a length from 0 to 100."""
        part = self.percent_to_fall
        return None if part is None else round(min(max(part / FULL_BAR_PERCENT, Decimal(0)), Decimal(1)) * 100)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One event as one alert saw it: what was decided, and the mail that followed, if any."""

    at: datetime
    price: Decimal | None
    merchant_name: str
    decision: Decision | None
    mail: Notification | None


def list_alerts(*, user_id: int, page: int) -> tuple[Page[Alert], list[AlertView]]:
    """A page of somebody's alerts, newest first, with the prices now: 3 queries. A page outside gives the nearest."""
    paginator = Paginator(Alert.live.filter(user_id=user_id).select_related("wine", "merchant"), PAGE_SIZE)
    found = paginator.page(min(max(page, 1), paginator.num_pages))
    alerts = list(found)
    offers = cheapest_offers({alert.wine_id for alert in alerts}) if alerts else []
    return found, [AlertView(alert, _offer_for(alert, offers)) for alert in alerts]


def get_alert(*, user_id: int, pk: int) -> AlertView:
    """One alert of this person: 2 queries. Raises Alert.DoesNotExist, for others' too."""
    alert = Alert.live.select_related("wine", "merchant").get(user_id=user_id, pk=pk)
    return AlertView(alert, _offer_for(alert, cheapest_offers([alert.wine_id])))


def alerts_on_wine(*, user_id: int | None, wine_id: str) -> list[Alert]:
    """This person's alerts on one wine, the nearest to the price first: 1 query; none for a stranger."""
    if user_id is None:
        return []
    return list(Alert.live.filter(user_id=user_id, wine_id=wine_id).select_related("merchant").order_by("-target"))


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


def _offer_for(alert: Alert, offers: list[CurrentOffer]) -> CurrentOffer | None:
    return best_offer(offers, wine_id=alert.wine_id, merchant_id=alert.merchant_id)
