"""PAYMENTS_URL: who takes people's payments. Pure.

stripe://sk_live_…@                                  Stripe
stripe://sk_test_…@127.0.0.1:8027/?tls=false         a stand-in for it on this machine
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class Account:
    secret_key: str = field(repr=False)
    api_base: str


def read(url: str) -> Account | None:
    """The account, or None for no URL: then nothing is sold. Raises ValueError in words for a URL that is none."""
    if not url:
        return None
    scheme = url.partition("://")[0]
    if scheme != "stripe":
        raise ValueError(f"PAYMENTS_URL: {scheme}:// is no payment provider that we know; stripe:// is.")
    parts = urlsplit(url)
    if not parts.username:
        raise ValueError("PAYMENTS_URL: stripe:// needs the secret key before an @, as in stripe://sk_live_…@")
    plain = parse_qs(parts.query).get("tls") == ["false"]
    where = (parts.hostname or "api.stripe.com") + (f":{parts.port}" if parts.port else "")
    return Account(unquote(parts.username), f"{'http' if plain else 'https'}://{where}")
