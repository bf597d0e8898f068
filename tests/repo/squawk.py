"""What squawk says of some SQL, but for the rules that are about taste or that we keep in another way."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST_POSTGRES = "15"
# Our migrate sets the lock's time limit itself, for all of them; types are Django's choice; a transaction is Django's.
NOT_OURS = (
    *(
        "require-timeout-settings",
        "require-lock-timeout",
        "require-statement-timeout",
        "prefer-robust-stmts",
        "prefer-text-field",
        "ban-char-field",
        "prefer-identity",
    ),
    *("prefer-bigint-over-int", "prefer-bigint-over-smallint", "prefer-timestamp-tz"),
    *("transaction-nesting", "ban-create-domain-with-constraint"),
)


@dataclass(frozen=True)
class Complaint:
    rule: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.rule} (line {self.line}): {self.message}"


def complaints(sql: str) -> list[Complaint]:
    command = [Path(sys.executable).parent / "squawk", "--reporter", "json", "--pg-version", OLDEST_POSTGRES]
    excluded = [argument for rule in NOT_OURS for argument in ("--exclude", rule)]
    done = subprocess.run([*command, *excluded], input=sql, capture_output=True, text=True, check=False)
    if not done.stdout.strip().startswith("["):
        raise RuntimeError(done.stdout + done.stderr)
    found = [Complaint(each["rule_name"], each["line"] + 1, each["message"]) for each in json.loads(done.stdout)]
    return [each for each in found if each.rule not in NOT_OURS]
