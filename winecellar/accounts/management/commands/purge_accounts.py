from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from winecellar.accounts import cache
from winecellar.accounts.models import AccountMail, Session


class Command(BaseCommand):
    help = "Remove sessions that are over, mails about accounts whose links no longer work, attempts long forgotten."

    def handle(self, **_: Any) -> None:
        now = timezone.now()
        sessions, _by_model = Session.objects.filter(expire_date__lt=now).delete()
        mails, _by_model = AccountMail.objects.filter(wanted_until__lt=now).delete()
        self.stdout.write(f"removed: {sessions} sessions, {mails} mails, {cache.purge()} counts of attempts")
