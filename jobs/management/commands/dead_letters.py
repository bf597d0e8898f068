from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.dead_letters import cli, store


class Command(BaseCommand):
    help = "Detect, diagnose and decide about dead letters. docs/runbooks/dead-letters.md says when to do what."

    def add_arguments(self, parser: ArgumentParser) -> None:
        cli.add_arguments(parser)

    def handle(self, *, what: str, json: bool, **options: Any) -> None:
        answers = cli.Answers(json, say=self.stdout.write, tell=self.stderr.write)
        try:
            answers.run(what, options, store.now())
        except ValueError as error:
            raise CommandError(str(error)) from None
