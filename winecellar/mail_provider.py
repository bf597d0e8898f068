"""EMAIL_URL: who takes our mails. A mail server, or a provider's HTTP API; what it says becomes Django's settings.

    smtp://user:password@host:587/?tls=true     STARTTLS, and no mail where that fails; smtp+tls:// says the same,
                                                smtp+ssl:// TLS from the first byte (consolemail://, memorymail://)
    resend://re_…@                              the Resend API: takes an idempotency key
    postmark://token@                           the Postmark API: takes none

A provider's URL may name another host and port, for a stand-in: resend://key@127.0.0.1:8026/?tls=false. Pure.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import environ

# scheme → the backend, the name of anymail's setting for the key, the provider's own host
PROVIDERS = {
    "resend": ("jobs.mail.backends.ResendBackend", "RESEND_API_KEY", "RESEND_API_URL", "api.resend.com"),
    "postmark": (
        "jobs.mail.backends.PostmarkBackend",
        "POSTMARK_SERVER_TOKEN",
        "POSTMARK_API_URL",
        "api.postmarkapp.com",
    ),
}
SMTP = {"django.core.mail.backends.smtp.EmailBackend": "jobs.mail.backends.SmtpBackend"}


def read(url: str, *, timeout: float) -> dict[str, Any]:
    """The settings, EMAIL_BACKEND and ANYMAIL among them. Raises ValueError in words for a URL that is none."""
    settings: dict[str, Any] = {"EMAIL_TIMEOUT": timeout, "ANYMAIL": {"REQUESTS_TIMEOUT": timeout}}
    scheme = url.partition("://")[0]
    if scheme in PROVIDERS:
        backend, key_setting, url_setting, host = PROVIDERS[scheme]
        parts = urlsplit(url)
        if not parts.username:
            raise ValueError(f"EMAIL_URL: {scheme}:// needs the API key before an @, as in {scheme}://key@")
        plain = parse_qs(parts.query).get("tls") == ["false"]
        where = (parts.hostname or host) + (f":{parts.port}" if parts.port else "")
        settings["EMAIL_BACKEND"] = backend
        settings["ANYMAIL"] |= {
            key_setting: unquote(parts.username),
            url_setting: f"{'http' if plain else 'https'}://{where}/",
        }
        return settings
    found = environ.Env.email_url_config(url) if url else {}
    # django-environ passes by what it does not know: mails and password would go out in the clear.
    tls = _tls(url)
    backend = found.get("EMAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")
    return settings | {
        "EMAIL_BACKEND": SMTP.get(backend, backend),
        "EMAIL_HOST": found.get("EMAIL_HOST") or "localhost",
        "EMAIL_PORT": found.get("EMAIL_PORT") or 25,
        "EMAIL_HOST_USER": found.get("EMAIL_HOST_USER") or "",
        "EMAIL_HOST_PASSWORD": found.get("EMAIL_HOST_PASSWORD") or "",
        "EMAIL_USE_TLS": found.get("EMAIL_USE_TLS", False) if tls is None else tls,
        "EMAIL_USE_SSL": found.get("EMAIL_USE_SSL", False),
    }


def _tls(url: str) -> bool | None:
    """What a mail server's URL says of STARTTLS, if it says anything. Raises ValueError for what is neither."""
    given = parse_qs(urlsplit(url).query).get("tls")
    if given is None:
        return None
    if given not in (["true"], ["false"]):
        raise ValueError(f"EMAIL_URL: tls={','.join(given)} is neither tls=true nor tls=false.")
    if given == ["true"] and "ssl" in urlsplit(url).scheme:
        raise ValueError("EMAIL_URL: smtp+ssl:// has TLS from the first byte; tls=true is for smtp://.")
    if given == ["false"] and "tls" in urlsplit(url).scheme:
        raise ValueError("EMAIL_URL: smtp+tls:// and tls=false contradict each other.")
    return given == ["true"]
