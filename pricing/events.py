"""The price events: what pricing publishes, and how every consumer reads it.

`wine.price_changed` is a fat event. Four fields are contract: `event_id`, `wine_id`, `new_price_usd`, `occurred_at`;
the rest is convenience and may change. Of that, `currency` alone is always there, and checked: a price in other money
under a name that says dollars would be a mistake. event_schemas.py has the events as JSON Schema.
`wine.late_price_observed` has the same body: a price that arrived after a newer one, so it is history only.
`wine.offer_withdrawn` and `wine.offer_returned` say that a merchant offers a wine no longer, or again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from jobs.errors import PermanentError
from jobs.messages import Message, NewMessage
from pricing.contract import CURRENCIES, LARGEST_PRICE, PRICE_CURRENCY, parse_time

PRICE_CHANGED = "wine.price_changed"
LATE_PRICE_OBSERVED = "wine.late_price_observed"
OFFER_WITHDRAWN = "wine.offer_withdrawn"
OFFER_RETURNED = "wine.offer_returned"
# A wine was entered, or what is said of it changed: its name, its vintage, that it is retired.
WINE_DESCRIBED = "wine.described"
# A command: a merchant's catalogue file is to be taken, or gone on with. Body: file_id.
REFRESH_CATALOGUE = "refresh_catalogue"

LONGEST_ID = 40  # as the columns that hold wine and merchant ids
NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class PriceChanged:
    """One merchant's price of one wine changed. `old_price_usd` is None for the first price; times are aware.

    A price that was not said in dollars is in the body as it was said too: `native_price`, `native_currency`.
    """

    event_id: str
    wine_id: str
    wine_name: str
    merchant_id: str
    old_price_usd: Decimal | None
    new_price_usd: Decimal
    currency: str
    occurred_at: datetime
    native_price: Decimal | None = None
    native_currency: str = ""

    def as_message(self, type_: str = PRICE_CHANGED, attributes: Mapping[str, str] = NO_ATTRIBUTES) -> NewMessage:
        """The canonical event as a message of its wine's key, ready for jobs.outbox.publish."""
        body = {
            "event_id": self.event_id,
            "type": type_,
            "occurred_at": written(self.occurred_at),
            "wine_id": self.wine_id,
            "wine_name": self.wine_name,
            "merchant_id": self.merchant_id,
            "old_price_usd": None if self.old_price_usd is None else _cents(self.old_price_usd),
            "new_price_usd": _cents(self.new_price_usd),
            "currency": self.currency,
        }
        if self.native_price is not None:
            body |= {"native_price": _cents(self.native_price), "native_currency": self.native_currency}
        return NewMessage(type=type_, key=self.wine_id, body=body, event_id=self.event_id, attributes=dict(attributes))

    @classmethod
    def parse(cls, message: Message) -> PriceChanged:
        """Read a price event. Raises PermanentError that names everything wrong with it in one reason."""
        body: Any = message.body
        if not isinstance(body, dict):
            raise PermanentError("body not an object")
        wrong: list[str] = []
        event_id = _text(body, "event_id", wrong)
        wine_id = _text(body, "wine_id", wrong, longest=LONGEST_ID)
        price = _price(body, wrong)
        occurred_at = _time(body, wrong)
        currency = _currency(body, wrong)
        if wrong or price is None or occurred_at is None:
            raise PermanentError("; ".join(wrong))
        return cls(
            event_id=event_id,
            wine_id=wine_id,
            wine_name=_convenient_text(body, "wine_name"),
            merchant_id=_convenient_text(body, "merchant_id"),
            old_price_usd=number(body.get("old_price_usd")),
            new_price_usd=price,
            currency=currency,
            occurred_at=occurred_at,
            native_price=number(body.get("native_price")),
            native_currency=_convenient_text(body, "native_currency"),
        )


@dataclass(frozen=True)
class AvailabilityChanged:
    """A merchant offers a wine no longer, or again. `price_usd` is what it costs on its return, and did on leaving.

    `why` is for people. If it returned at another price, `price_event_id` names the `wine.price_changed` that said so.
    """

    event_id: str
    type: str
    wine_id: str
    wine_name: str
    merchant_id: str
    price_usd: Decimal
    occurred_at: datetime
    why: str = ""
    price_event_id: str = ""

    @property
    def offered(self) -> bool:
        return self.type == OFFER_RETURNED

    def as_message(self, attributes: Mapping[str, str] = NO_ATTRIBUTES) -> NewMessage:
        body = {
            "event_id": self.event_id,
            "type": self.type,
            "occurred_at": written(self.occurred_at),
            "wine_id": self.wine_id,
            "wine_name": self.wine_name,
            "merchant_id": self.merchant_id,
            "price_usd": _cents(self.price_usd),
            "currency": PRICE_CURRENCY,
        }
        told = {"why": self.why, "price_event_id": self.price_event_id}
        body |= {name: text for name, text in told.items() if text}
        return NewMessage(
            type=self.type, key=self.wine_id, body=body, event_id=self.event_id, attributes=dict(attributes)
        )

    @classmethod
    def parse(cls, message: Message) -> AvailabilityChanged:
        """Read one; merchant and price are contract here. Raises PermanentError, as PriceChanged.parse does."""
        body: Any = message.body
        if not isinstance(body, dict):
            raise PermanentError("body not an object")
        wrong: list[str] = []
        event_id = _text(body, "event_id", wrong)
        wine_id = _text(body, "wine_id", wrong, longest=LONGEST_ID)
        merchant_id = _text(body, "merchant_id", wrong, longest=LONGEST_ID)
        price = _price(body, wrong, "price_usd")
        occurred_at = _time(body, wrong)
        _currency(body, wrong)
        if wrong or price is None or occurred_at is None:
            raise PermanentError("; ".join(wrong))
        return cls(
            event_id=event_id,
            type=message.type,
            wine_id=wine_id,
            wine_name=_convenient_text(body, "wine_name"),
            merchant_id=merchant_id,
            price_usd=price,
            occurred_at=occurred_at,
            why=_convenient_text(body, "why"),
            price_event_id=_convenient_text(body, "price_event_id"),
        )


def written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _cents(price: Decimal) -> Decimal:
    return price.quantize(Decimal("0.01"))


def _text(body: dict[str, Any], name: str, wrong: list[str], *, longest: int | None = None) -> str:
    value = body.get(name)
    if value is None or value == "":
        wrong.append(f"{name} required")
    elif not isinstance(value, str):
        wrong.append(f"{name} not text")
    elif longest is not None and len(value) > longest:
        wrong.append(f"{name} longer than {longest}")
    else:
        return value
    return ""


def _price(body: dict[str, Any], wrong: list[str], name: str = "new_price_usd") -> Decimal | None:
    value = body.get(name)
    price = number(value)
    if value is None:
        wrong.append(f"{name} required")
    elif price is None:
        wrong.append(f"{name} {_shown(value)} not a number")
    elif not 0 < price <= LARGEST_PRICE:
        wrong.append(f"{name} {_shown(price)} not above 0 and at most {LARGEST_PRICE}")
    elif price != _cents(price):
        wrong.append(f"{name} {_shown(price)} has more than two decimals")
    else:
        return price
    return None


def _time(body: dict[str, Any], wrong: list[str]) -> datetime | None:
    value = body.get("occurred_at")
    if value is None or value == "":
        wrong.append("occurred_at required")
        return None
    try:
        return parse_time(value if isinstance(value, str) else "")
    except ValueError:
        wrong.append(f"occurred_at {_shown(value)} not an RFC 3339 time")
        return None


def _currency(body: dict[str, Any], wrong: list[str]) -> str:
    value = body.get("currency")
    if value is None or value == "":
        wrong.append("currency required")
    elif not isinstance(value, str) or value not in CURRENCIES:
        wrong.append(f"currency {_shown(value)} not ISO-4217")
    elif value != PRICE_CURRENCY:
        wrong.append(f"currency {_shown(value)} not {PRICE_CURRENCY}, which the prices are in")
    else:
        return value
    return ""


def number(value: Any) -> Decimal | None:
    """A JSON number as Decimal; None for anything else (True is an int to Python, not to us)."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Decimal(value)


def _shown(value: Any) -> str:
    """As it came, for a reason that an operator reads; cut, for a value may be long."""
    return (str(value) if isinstance(value, Decimal) else repr(value))[:60]


def _convenient_text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""
