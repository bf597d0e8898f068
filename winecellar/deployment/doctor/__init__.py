"""Looks at a deployment from where it stands, changes nothing, and says what to do about each thing that is not well.

Guarantee: one part that cannot be looked at is a finding like any other, and hides no other part. Called by
`manage.py doctor`; docs/runbooks and docs/upgrade.md refer to its checks by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.db import Error, connection

from winecellar.deployment.doctor import code, outside, rights, schema, server, work
from winecellar.deployment.doctor.finding import Finding, fail

Check = Callable[[], Iterator[Finding]]
WITHOUT_DATABASE: tuple[Check, ...] = (code.settings_are_sound, code.what_is_installed_is_what_is_pinned, outside.mail)
WITH_DATABASE: tuple[Check, ...] = (
    server.version,
    server.clock,
    server.durability,
    server.connections,
    server.autovacuum,
    schema.migrations,
    schema.drift,
    schema.indexes_and_constraints,
    schema.triggers,
    rights.who_we_are,
    rights.as_declared,
    outside.replicas,
    work.months_ahead,
    work.subscriptions,
    work.processes,
    work.oldest_delivery,
    work.incidents,
)


def look() -> list[Finding]:
    found = [finding for check in WITHOUT_DATABASE for finding in _looked_at(check)]
    try:
        connection.ensure_connection()
    except Error as error:
        do = "See that DATABASE_URL names it, that it runs, and that its pg_hba.conf lets this host in."
        return [*found, fail("database", f"The database does not answer: {_first_line(error)}", do)]
    return found + [finding for check in WITH_DATABASE for finding in _looked_at(check)]


def _looked_at(check: Check) -> Iterator[Finding]:
    name = f"{check.__module__.rpartition('.')[2]}.{check.__name__}"
    try:
        yield from check()
    except Exception as error:
        says = f"{name} could not be looked at: {type(error).__name__}: {_first_line(error)}"
        yield fail(
            "doctor", says, "Mend what else is found and look again; if it stays, this is a fault of the doctor."
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]
