"""This process itself: its settings, and the versions of what it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings
from django.core import checks

from winecellar.deployment.doctor.finding import Finding, fail, ok, warn

PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<marker>\s*;)?", re.MULTILINE)


def settings_are_sound() -> Iterator[Finding]:
    """Django's own checks and ours, as `manage.py check --deploy` says them."""
    found = checks.run_checks(include_deployment_checks=settings.PRODUCTION)
    for message in found:
        level = fail if message.level >= checks.ERROR else warn
        yield level("settings", f"{message.id}: {message.msg}", str(message.hint or "See manage.py check --deploy."))
    if not settings.PRODUCTION:
        yield ok("settings", "development's: set WINECELLAR_ENV=production to have a deployment's looked at")
    elif not found:
        yield ok("settings", "check --deploy finds nothing")


def what_is_installed_is_what_is_pinned() -> Iterator[Finding]:
    pins = settings.BASE_DIR / "requirements.txt"
    if not pins.exists():
        yield warn(
            "packages", "There is no requirements.txt beside the code.", "Deploy it too: it says what was tested."
        )
        return
    wrong = []
    for pin in PIN.finditer(pins.read_text()):
        if pin["marker"]:
            continue  # for some platforms or interpreters only
        try:
            here = version(pin["name"])
        except PackageNotFoundError:
            here = "missing"
        if here != pin["version"]:
            wrong.append(f"{pin['name']} {here} (pinned: {pin['version']})")
    if wrong:
        do = "Run pip install --require-hashes -r requirements.txt in this virtualenv."
        yield warn("packages", f"Not what was tested: {', '.join(wrong)}.", do)
    else:
        yield ok("packages", "as pinned")
