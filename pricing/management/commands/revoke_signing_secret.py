"""`manage.py revoke_signing_secret NAME`: stop a signing secret from working, at once."""

from datetime import datetime

from pricing.management.credentials import RevokeCommand
from pricing.models import SigningSecret
from pricing.signing import revoke_secret


class Command(RevokeCommand):
    help = "Revoke the signing secret that list_signing_secrets shows under this name."
    model = SigningSecret
    called, named = "signing secret", "name"

    def stop(self, credential: SigningSecret, now: datetime) -> bool:
        return revoke_secret(secret=credential, now=now)
