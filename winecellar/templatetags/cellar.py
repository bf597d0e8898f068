"""How the pages write prices, sizes, times and changes. In every template without a load tag; they read nothing."""

from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django import template
from django.core.paginator import Page
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pricing.sizes import size_words

register = template.Library()

NO_BREAK = "\u00a0"


@register.filter
def usd(value: Decimal | str | None) -> str:
    """“$1,234.50”; a dash for no price, which templates hand over as None or, where its owner is None, as ""."""
    return f"${value:,.2f}" if isinstance(value, Decimal) else "–"


SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}


@register.filter
def in_money(value: Decimal | str | None, currency: str) -> str:
    """“€1,234.50”, “CHF 1,234.50”; a dash for no amount. “ short” after the currency leaves out cents that are none."""
    if not isinstance(value, Decimal):
        return "–"
    code, _, short = currency.partition(" ")
    amount = f"{abs(value):,.0f}" if short and value == value.to_integral_value() else f"{abs(value):,.2f}"
    return ("−" if value < 0 else "") + SIGNS.get(code, f"{code}{NO_BREAK}") + amount


@register.filter
def signed(value: Decimal, currency: str) -> str:
    """“+$12.00”, “−$12.00”: the sign is a character, not a colour."""
    return ("+" if value > 0 else "") + in_money(value, currency)


@register.filter
def amount(value: str, currency: str) -> str:
    """Money that was kept as text."""
    return in_money(Decimal(value), currency)


@register.filter
def positive(value: Decimal) -> Decimal:
    """Without its sign: the words around it say which way."""
    return abs(value)


@register.filter
def money(amount: Decimal, currency: str) -> str:
    """“EUR 92.00”: another currency by its code, so that no sign is taken for another's."""
    return f"{currency}{NO_BREAK}{amount:,.2f}"


@register.filter
def usd_short(value: Decimal) -> str:
    """For an axis: cents only where there are any."""
    return f"${value:,.0f}" if value == value.to_integral_value() else usd(value)


@register.filter
def percent(value: Decimal) -> str:
    """“12 %”, without its sign: the words around it say which way."""
    whole = abs(value).quantize(Decimal(1), ROUND_HALF_UP)
    return f"{whole}{NO_BREAK}%" if whole or not value else f"under 1{NO_BREAK}%"


register.filter("bottle", size_words)


@register.filter
def moment(value: datetime, precision: str = "minutes") -> SafeString:
    """A <time> with its zone: “today 14:02 UTC”, “12 Nov 14:02 UTC”; with "seconds" also those."""
    at = value.astimezone(UTC)
    clock = f"{at:%H:%M:%S}" if precision == "seconds" else f"{at:%H:%M}"
    return _time(at, f"{_date_words(at)} {clock}{NO_BREAK}UTC")


@register.filter
def day(value: date) -> str:
    """“12 Nov”, for an axis."""
    return f"{value.day}{NO_BREAK}{value:%b}"


@register.filter
def date_words(value: date) -> SafeString:
    """A day as a <time>: “12 Nov”, “12 Nov 2019” in another year than this."""
    year = "" if value.year == timezone.now().year else f" {value.year}"
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), day(value) + year)


@register.filter
def times(count: int) -> str:
    """“never”, “once”, “3 times”."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


@register.inclusion_tag("_change.html")
def price_change(now: Decimal | None, before: Decimal | None, since: str) -> dict[str, Any]:
    """The change of a price in words, with a sign that does not depend on colour."""
    known = now is not None and before is not None
    difference = now - before if now is not None and before is not None else Decimal(0)
    return {
        "known": known,
        "offered": now is not None,
        "difference": difference,
        "amount": abs(difference),
        "part": difference / before * 100 if before else Decimal(0),
        "since": since,
    }


@register.inclusion_tag("_pages.html", takes_context=True)
def pages(context: template.Context, page: Page[Any]) -> dict[str, Any]:
    """Links to the pages before and after; nothing where there is one page only. Keeps the rest of the query."""
    return {"page": page, "request": context["request"]}


def _date_words(at: datetime) -> str:
    today = timezone.now().astimezone(UTC).date()
    if at.date() == today:
        return "today"
    if at.date() == today - timedelta(days=1):
        return "yesterday"
    return f"{at.day}{NO_BREAK}{at:%b}" + ("" if at.year == today.year else f" {at.year}")


def _time(at: datetime, words: str) -> SafeString:
    return format_html('<time datetime="{}">{}</time>', at.isoformat(timespec="seconds").replace("+00:00", "Z"), words)
