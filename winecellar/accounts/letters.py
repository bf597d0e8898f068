"""What the mails about accounts say: each as a few sentences, from which one text and one HTML part are made.

Links begin with SITE_URL; what a request says about its host is never in a mail. Sending is delivery.py's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse

CONFIRM_LIFETIME = timedelta(days=settings.ACCOUNT_EMAIL_CONFIRMATION_EXPIRE_DAYS)
RESET_LIFETIME = timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
NOT_YOU = "If it was not you, set a new password: that signs everybody else out."


@dataclass(frozen=True)
class Letter:
    """`link` names where the button leads: a key of the context, or of PLACES. `wanted` is how long it is worth it."""

    subject: str
    says: str
    button: str
    link: str
    then: str
    wanted: timedelta = CONFIRM_LIFETIME


PLACES = {"reset": "account_reset_password", "sign_up": "account_signup", "account": "account"}

_CONFIRM = Letter(
    subject="Confirm your address",
    says="Somebody, we hope you, wants to use this address at Winecellar. Alerts are sent to it once it is confirmed.",
    button="Confirm this address",
    link="activate_url",
    then=f"The link works once, within {CONFIRM_LIFETIME.days} days. If this was not you, do nothing: without the link "
    "we send nothing else here.",
)

# By the name under which allauth asks for the mail.
LETTERS = {
    "account/email/email_confirmation": _CONFIRM,
    "account/email/email_confirmation_signup": _CONFIRM,
    "account/email/account_already_exists": Letter(
        subject="You have an account already",
        says="Somebody, we hope you, tried to sign up at Winecellar with this address. It has an account.",
        button="Set a new password",
        link="reset",
        then="If you know your password, sign in with it. If this was not you, do nothing: nothing was changed.",
    ),
    "account/email/unknown_account": Letter(
        subject="There is no account for this address",
        says="Somebody, we hope you, asked to reset the password of an account with this address. There is none.",
        button="Sign up",
        link="sign_up",
        then="You may have signed up with another address. If this was not you, do nothing.",
    ),
    "account/email/password_reset_key": Letter(
        subject="Set a new password",
        says="Somebody, we hope you, asked for a new password for your account at Winecellar.",
        button="Set a new password",
        link="password_reset_url",
        then=f"The link works once, within {RESET_LIFETIME.total_seconds() / 60:.0f} minutes. If this was not you, do "
        "nothing: your password stays as it is.",
        wanted=RESET_LIFETIME,
    ),
    "account/email/password_changed": Letter(
        "Your password was changed", "The password of your account was changed.", "Reset the password", "reset", NOT_YOU
    ),
    "account/email/password_reset": Letter(
        "Your password was changed",
        "The password of your account was set anew, through a link in a mail.",
        "Reset the password",
        "reset",
        NOT_YOU,
    ),
    "account/email/email_changed": Letter(
        subject="Your account has another address now",
        says="This is no longer the address of your account at Winecellar: another one was given, and confirmed.",
        button="Open Winecellar",
        link="account",
        then="You will get no more mail here. If it was not you who changed it, answer this mail at once.",
    ),
    "account/email/email_deleted": Letter(
        "A change of address was called off",
        "The address of your account stays as it is: the new one, not yet confirmed, was taken away again.",
        "Your account",
        "account",
        NOT_YOU,
    ),
    "mfa/email/totp_activated": Letter(
        "Signing in now asks for a code",
        "An authenticator app was added to your account: signing in asks for its code from now on.",
        "Your account",
        "account",
        NOT_YOU,
    ),
    "mfa/email/totp_deactivated": Letter(
        "Signing in no longer asks for a code",
        "The authenticator app was removed from your account: the password alone opens it.",
        "Your account",
        "account",
        NOT_YOU,
    ),
    "mfa/email/recovery_codes_generated": Letter(
        "You have new recovery codes",
        "New recovery codes were made for your account. The old ones no longer work.",
        "Your account",
        "account",
        NOT_YOU,
    ),
}


@dataclass(frozen=True)
class Written:
    subject: str
    text: str
    html: str
    wanted: timedelta


def write(kind: str, context: Mapping[str, Any]) -> Written:
    """One mail, ready but for its recipient. Raises KeyError for a kind that has no letter here."""
    letter = LETTERS[kind]
    link = context[letter.link] if letter.link in context else settings.SITE_URL + reverse(PLACES[letter.link])
    said = {"letter": letter, "link": link}
    return Written(
        subject=letter.subject,
        text=render_to_string("account/mail/letter.txt", said),
        html=render_to_string("account/mail/letter.html", said),
        wanted=letter.wanted,
    )
