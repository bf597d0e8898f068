"""How allauth's second factor behaves here: secrets sealed, our words; and who needs one to open the admin."""

from __future__ import annotations

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from pricing.sealing import UnreadableError, reseal, seal, unseal
from winecellar.accounts import words

# Where allauth keeps what must stay secret, by the type of authenticator.
SEALED = {Authenticator.Type.TOTP: "secret", Authenticator.Type.RECOVERY_CODES: "seed"}


class SecondFactorAdapter(DefaultMFAAdapter):
    error_messages = DefaultMFAAdapter.error_messages | words.SECOND_FACTOR_ERRORS

    def encrypt(self, text: str) -> str:
        return seal(text.encode())

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return unseal(encrypted_text).decode()
        except UnreadableError as error:
            raise self.validation_error("unreadable") from error


def may_operate(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether this member of the staff has the second factor that the admin asks for. One query."""
    return not settings.STAFF_NEED_SECOND_FACTOR or has_app(user)


def has_app(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether signing in asks this person for a code. One query."""
    return bool(Authenticator.objects.filter(user_id=user.pk, type=Authenticator.Type.TOTP).exists())


def reseal_all() -> tuple[int, int]:
    """Seal every secret with today's SECRET_KEY. Returns how many were, and how many no key of ours can read."""
    done = unreadable = 0
    for pk in list(Authenticator.objects.filter(type__in=SEALED).values_list("pk", flat=True)):
        with transaction.atomic():  # a recovery code used meanwhile is noted in the same column
            row = Authenticator.objects.select_for_update().filter(pk=pk).first()
            if row is None:
                continue
            name = SEALED[Authenticator.Type(row.type)]
            try:
                row.data[name] = reseal(row.data[name])
            except UnreadableError:
                unreadable += 1
                continue
            row.save(update_fields=["data"])
            done += 1
    return done, unreadable
