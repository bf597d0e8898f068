"""`manage.py list_signing_secrets`: every signing secret with its merchant and whether it works; never itself."""

from pricing.management.credentials import ListCommand
from pricing.models import SigningSecret


class Command(ListCommand):
    help = "List the signing secrets: our name for it, merchant, what for, state, note."
    model = SigningSecret

    def of_its_own(self, credential: SigningSecret) -> str:
        return f"{credential.kind:<12} "
