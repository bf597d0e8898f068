from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from jobs import retention


class Command(BaseCommand):
    help = "Remove what is past its time: ledger rows, dead letters, months of the message log; make the coming months."

    def handle(self, **_: Any) -> None:
        removed = retention.apply(now=timezone.now())
        months = ", ".join(removed.months) or "none"
        self.stdout.write(f"ledger rows removed: {removed.ledger}; dead letters removed: {removed.dead_letters}")
        self.stdout.write(f"months of the message log dropped: {months}")
        if removed.expiring:
            self.stdout.write(self.style.WARNING(f"{removed.expiring} dead letters expire soon; decide about them."))
