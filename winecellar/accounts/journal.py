"""What is logged of signing in and of what opens an account: who by number, never an address, and nothing typed.

Listens to Django's and allauth's signals; called by nobody.
"""

from __future__ import annotations

from typing import Any

import structlog
from allauth.account import signals as account
from allauth.mfa import signals as mfa
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import Signal

log = structlog.get_logger(__name__)
EVENTS: dict[str, Signal] = {
    "account.signed_in": user_logged_in,
    "account.signed_out": user_logged_out,
    "account.password_changed": account.password_changed,
    "account.password_reset": account.password_reset,
    "account.email_changed": account.email_changed,
    "account.second_factor_added": mfa.authenticator_added,
    "account.second_factor_removed": mfa.authenticator_removed,
}


def connect() -> None:
    for event, signal in EVENTS.items():
        signal.connect(_teller(event), weak=False, dispatch_uid=event)
    user_login_failed.connect(_failed, dispatch_uid="account.sign_in_failed")


def _teller(event: str) -> Any:
    def tell(user: Any = None, **_: Any) -> None:
        log.info(event, user=getattr(user, "pk", None))

    return tell


def _failed(**_: Any) -> None:
    """Whose account it was is not said: what was typed may be somebody's password in the wrong field."""
    log.warning("account.sign_in_failed")
