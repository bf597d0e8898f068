from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.journey import cli, selectors
from jobs.journey.hooks import load_journeys


class Command(BaseCommand):
    help = "What became of one event, in each subscription. Also finds events: by a trace id, a request's id, and more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "what", help=f"an event id, a trace id or traceparent, a request's id, {load_journeys().hint}"
        )
        parser.add_argument("--json", action="store_true", help="answer in JSON, one document")

    def handle(self, *, what: str, json: bool, **options: Any) -> None:
        try:
            found = selectors.find(what)
        except ValueError as error:
            raise CommandError(str(error)) from None
        journey = selectors.journey(found[0].event_id) if len(found) == 1 else None
        if json and len(found) > 1:
            self.stdout.write(cli.as_json({"found": [vars(one) for one in found]}))
        elif found and journey is None:
            self.stdout.write("\n".join(cli.found_lines(found)))
        elif journey is None:
            raise CommandError(f"Nothing is known of {what}.")
        else:
            self.stdout.write(cli.as_json(journey.as_dict()) if json else "\n".join(cli.lines(journey)))
