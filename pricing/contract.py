"""What a price event must hold to be one: the currency codes, the range of a price, the form of a time. Pure.

Used by events (what we publish and read), by the feed's adapter (what we take), and by history, whose SQL states
the same rules. Guarantee: `parse_time` accepts exactly what TIME_PATTERN and the calendar accept.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

# The money of ISO 4217's list one. Left out: funds codes, metals and XTS/XXX, in which no bottle is priced.
_CODES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG
HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL
MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR
RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD
TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_CODES.split())
PRICE_CURRENCY = "USD"

# Whether a price has value added tax in it; many senders do not say.
TAX_INCLUDED, TAX_EXCLUDED, TAX_UNSAID = "included", "excluded", ""
TAXES = (TAX_INCLUDED, TAX_EXCLUDED)

LARGEST_PRICE = Decimal("99999999.99")  # numeric(10, 2)
LARGEST_NATIVE_PRICE = Decimal("999999999999.99")  # numeric(14, 2): in other money, a bottle costs more

# RFC 3339 with its offset, spelt so that Python and Postgres read it alike. No leap second, no 24:00, and no offset
# that no place on earth has. The calendar (30 February) is left to whoever converts it.
TIME_PATTERN = (
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(\.[0-9]{1,9})?"
    r"([Zz]|[+-](0[0-9]|1[0-5]):[0-5][0-9])$"
)
_TIME = re.compile(TIME_PATTERN.removesuffix("$") + r"\Z")


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time with its offset; fractions beyond the microsecond are cut. Raises ValueError."""
    found = _TIME.match(text)
    if not found:
        raise ValueError("not an RFC 3339 time with an offset, such as 2030-05-17T09:30:00Z")
    year, month, day, hour, minute, second, fraction, offset, _ = found.groups()
    micro = int((fraction or ".")[1:7].ljust(6, "0"))
    naive = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micro)  # noqa: DTZ001
    return naive.replace(tzinfo=_zone(offset))


def _zone(offset: str) -> timezone:
    if offset in "Zz":
        return UTC
    ahead = timedelta(hours=int(offset[1:3]), minutes=int(offset[4:6]))
    return timezone(-ahead if offset[0] == "-" else ahead)
