"""Every message that is published, event or command, with its JSON Schema, and their releases:
`python -m winecellar.event_schemas` writes those of versions that are new into docs/schemas/.

Guarantee: a released version's file is never changed; whoever changes a schema gives it a new version.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from alerts import event_schemas as alerts
from jobs.dead_letters.events import RUN_REDRIVE
from pricing import event_schemas as pricing
from winecellar.accounts import event_schemas as accounts
from winecellar.purchases import event_schemas as purchases

JOBS = {
    RUN_REDRIVE: pricing.event(
        RUN_REDRIVE,
        "1.0",
        "A redrive of dead letters is to go on. Its key is the redrive's.",
        {"redrive_id": pricing.contract("The redrive's number.", type="integer", minimum=1)},
    )
}
MESSAGES: dict[str, dict[str, Any]] = {
    **pricing.SCHEMAS,
    **alerts.SCHEMAS,
    **accounts.SCHEMAS,
    **purchases.SCHEMAS,
    **JOBS,
}
RELEASES = Path(__file__).resolve().parent.parent / "docs" / "schemas"


def released(type_: str, folder: Path = RELEASES) -> list[dict[str, Any]]:
    """All versions of an event's schema that were released, the oldest first."""
    found = [json.loads(path.read_text()) for path in (folder / type_).glob("*.json")]
    return sorted(found, key=version_of)


def version_of(schema: dict[str, Any]) -> tuple[int, int]:
    major, minor = schema["x-version"].split(".")
    return int(major), int(minor)


def release(folder: Path = RELEASES) -> list[Path]:
    """Write what is new and return its files. Raises ValueError for a schema that changed and kept its version."""
    written = []
    for type_, schema in MESSAGES.items():
        path = folder / type_ / f"{schema['x-version']}.json"
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            written.append(path)
        elif path.read_text() != text:
            raise ValueError(f"{type_} {schema['x-version']} is released and differs: give the schema a new version.")
    return written


if __name__ == "__main__":
    try:
        for path in release():
            print(path.relative_to(RELEASES.parent.parent))  # noqa: T201
    except ValueError as error:
        sys.exit(str(error))
