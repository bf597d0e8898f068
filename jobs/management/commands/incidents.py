from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.alarms import incidents
from jobs.alarms.pages import page_of
from jobs.models import Incident
from jobs.words import utc


class Command(BaseCommand):
    help = "Show the open incidents with their runbooks, or acknowledge one: somebody is at it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", title="actions", metavar="")
        actions.add_parser("list", help="show those that are open; the same as no action")
        acknowledge = actions.add_parser("acknowledge", help="say that you have seen it")
        acknowledge.add_argument("id", type=int)
        acknowledge.add_argument("--by", required=True, help="who you are")

    def handle(self, *, action: str | None, **options: Any) -> None:
        if action == "acknowledge":
            by = str(options["by"]).strip()
            if not by:
                raise CommandError("--by: say who you are.")
            if not incidents.acknowledge(incident_id=options["id"], by=by):
                raise CommandError(self._why_not(options["id"]))
        found = Incident.objects.filter(closed_at=None, opened_at__isnull=False).order_by("id")
        for i in found:
            seen = f", acknowledged by {i.acknowledged_by}" if i.acknowledged_at else ""
            self.stdout.write(f"{i.pk:>6}  {i.severity}  {i.alarm}, {i.subject}: {i.summary}")
            self.stdout.write(f"        since {utc(i.since)}{seen}; {page_of(i.alarm)}")
        if not found:
            self.stdout.write("No incident is open.")

    @staticmethod
    def _why_not(incident_id: int) -> str:
        incident = Incident.objects.filter(pk=incident_id).first()
        if incident is None:
            return f"There is no incident {incident_id}."
        return f"Incident {incident_id} is {incident.state}; there is nothing to acknowledge."
