"""What alerts ought to say, written apart from alerts/rules.py and from the pages' promises alone. Reads no database.

A price alert tells of the first price at its target, of each that is a twentieth lower than the last it told of, and
again once the price has been above the target; within six hours of a mail only what is a twentieth lower. A low alert
does so with a price below all before it, a return alert with any offer after there was none. What a merchant has
replaced already is never told, nor is anything during a snooze.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

QUIET = timedelta(hours=6)


@dataclass
class Seen:
    """One event: `cents` None, the merchant left; `again`, it is back at the price it had."""

    event: str
    merchant: str
    cents: int | None
    again: bool = False


@dataclass
class Asked:
    """One alert: `kind` is price, low or back. `said` are the cents of the last mail."""

    kind: str
    cents: int = 0
    only: str = ""
    told: bool = False
    said: int | None = None
    by: str = ""
    when: datetime | None = None
    asleep_until: datetime | None = None
    mails: list[str] = field(default_factory=list)

    def hears(self, merchant: str) -> bool:
        return not self.only or self.only == merchant


class Reference:
    def __init__(self, alerts: list[Asked]) -> None:
        self.alerts = alerts
        self.asking: dict[str, int | None] = {}
        self.ever: list[tuple[str, int]] = []

    def look(self, events: list[Seen], newest: dict[str, str], clock: datetime) -> None:
        """Take in these events, in order; `newest` names each merchant's last one by now."""
        for seen in events:
            self.asking[seen.merchant] = seen.cents
            for alert in self.alerts:
                if alert.hears(seen.merchant):
                    self._tell(alert, seen, newest.get(seen.merchant) == seen.event, clock)
            if seen.cents is not None:
                self.ever.append((seen.merchant, seen.cents))

    def _tell(self, alert: Asked, seen: Seen, stands: bool, clock: datetime) -> None:
        asked = [cents for merchant, cents in self.asking.items() if cents is not None and alert.hears(merchant)]
        much_less = alert.kind != "back" and alert.said is not None and (seen.cents or 0) * 20 <= alert.said * 19
        if alert.told:
            line = {"price": alert.cents, "low": alert.said, "back": None}[alert.kind]
            if not asked or (line is not None and min(asked) > line):
                alert.told = False
            elif seen.cents is not None and much_less and stands and not self._sleeps(alert, clock):
                self._mail(alert, seen, clock)
            return
        if seen.cents is None or not stands or self._sleeps(alert, clock):
            return
        before = [cents for merchant, cents in self.ever if alert.hears(merchant)]
        if alert.kind == "price" and seen.cents > alert.cents:
            return
        if alert.kind == "low" and (not before or seen.cents >= min(before)):
            return
        alert.told = True
        same_offer = seen.again and alert.kind != "back" and (alert.by, alert.said) == (seen.merchant, seen.cents)
        lately = alert.when is not None and clock - alert.when < QUIET
        if not same_offer and (not lately or much_less):
            self._mail(alert, seen, clock)

    def _mail(self, alert: Asked, seen: Seen, clock: datetime) -> None:
        alert.mails.append(seen.event)
        alert.said, alert.by, alert.when = seen.cents, seen.merchant, clock

    def _sleeps(self, alert: Asked, clock: datetime) -> bool:
        return alert.asleep_until is not None and clock < alert.asleep_until
