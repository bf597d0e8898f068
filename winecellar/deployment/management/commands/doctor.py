import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from winecellar.deployment.doctor import look
from winecellar.deployment.doctor.finding import Finding, Level, exit_code

MARK = {Level.OK: "  ok  ", Level.WARN: " warn ", Level.FAIL: " FAIL "}


class Command(BaseCommand):
    help = (
        "Look at this deployment, change nothing, and say what to do. "
        "Ends with 0: nothing to do, 1: something does not hold, 2: warnings alone."
    )
    requires_system_checks = []  # what they find is a finding among others

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the findings as JSON, for programs")

    def handle(self, **options: Any) -> None:
        findings = look()
        if options["json"]:
            self.stdout.write(json.dumps([finding.as_json() for finding in findings], indent=2))
        else:
            for finding in findings:
                self._tell(finding)
        sys.exit(exit_code(findings))

    def _tell(self, finding: Finding) -> None:
        style = {Level.OK: self.style.SUCCESS, Level.WARN: self.style.WARNING, Level.FAIL: self.style.ERROR}
        self.stdout.write(f"{style[finding.level](MARK[finding.level])} {finding.check:<17}{finding.says}")
        if finding.do:
            self.stdout.write(f"{'':24}→ {finding.do}")
