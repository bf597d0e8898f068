"""Whether the database has the tables, columns, indexes, rules and triggers that this code was written for."""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps

from winecellar.deployment.applied import difference
from winecellar.deployment.doctor.finding import Finding, fail, ok, warn
from winecellar.deployment.doctor.server import ask

# What holds a promise and is no index or constraint of a model: the trigger, its table, and whether it always fires.
TRIGGERS = {
    "jobs_audit_row": ("jobs_audit", True),
    "jobs_audit_whole": ("jobs_audit", True),
    "jobs_tally_inserted": ("jobs_deadletter", False),
    "jobs_tally_updated": ("jobs_deadletter", False),
    "jobs_tally_deleted": ("jobs_deadletter", False),
}


def migrations() -> Iterator[Finding]:
    found = difference()
    if found.missing:
        yield fail(
            "migrations",
            f"Not applied: {', '.join(found.missing)}.",
            "Run manage.py migrate, before the new code runs.",
        )
    if found.newer:
        said = f"The database has migrations that this code does not know: {', '.join(found.newer)}."
        yield warn("migrations", said, "Deploy the newer code here too; the older may run beside it for one release.")
    if not found.missing and not found.newer:
        yield ok("migrations", "all applied")


def drift() -> Iterator[Finding]:
    """Columns, by name: a type that somebody changed by hand is found by the first statement that minds."""
    there: dict[str, set[str]] = {}
    for table, column in ask(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
    ):
        there.setdefault(table, set()).add(column)
    wrong = False
    for model in apps.get_models(include_auto_created=True):
        if getattr(model, "TABLELESS", False):
            continue
        table = model._meta.db_table
        expected = {field.column for field in model._meta.local_concrete_fields if field.column}
        if table not in there:
            wrong = True
            yield fail(
                "schema", f"The table {table} is not there.", "Run manage.py migrate; if it is applied, restore."
            )
            continue
        for column in sorted(expected - there[table]):
            wrong = True
            yield fail(
                "schema", f"{table} has no column {column}.", "Somebody changed the schema by hand: put it back."
            )
        for column in sorted(there[table] - expected) if model._meta.managed else ():
            wrong = True
            do = "Run manage.py migrate, or, if newer code runs beside this, do nothing."
            yield warn("schema", f"{table} has a column that this code does not know: {column}.", do)
    if not wrong:
        yield ok("schema", "every model has its table and columns")


def indexes_and_constraints() -> Iterator[Finding]:
    there = {name for (name,) in ask("SELECT relname FROM pg_class WHERE relkind IN ('i', 'I')")}
    there |= {name for (name,) in ask("SELECT conname FROM pg_constraint")}
    missing = sorted(
        f"{each.name} on {model._meta.db_table}"
        for model in apps.get_models()
        if model._meta.managed
        for each in (*model._meta.indexes, *model._meta.constraints)
        if each.name not in there
    )
    for name in missing:
        yield fail(
            "indexes", f"There is no {name}.", "manage.py sqlmigrate shows how it is made; make it CONCURRENTLY."
        )
    invalid = ask(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE NOT i.indisvalid ORDER BY 1"
    )
    for (name,) in invalid:
        yield fail(
            "indexes",
            f"The index {name} is invalid: it was begun and never finished.",
            f"REINDEX INDEX CONCURRENTLY {name}",
        )
    unchecked = ask("SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE NOT convalidated ORDER BY 1, 2")
    for table, name in unchecked:
        do = f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}"
        yield warn("indexes", f"{name} on {table} was never checked against the rows that were there.", do)
    if not missing and not invalid and not unchecked:
        yield ok("indexes", "all there, all valid")


def triggers() -> Iterator[Finding]:
    found = {
        (name, table): enabled
        for name, table, enabled in ask(
            "SELECT tgname, tgrelid::regclass::text, tgenabled FROM pg_trigger WHERE NOT tgisinternal"
        )
    }
    wrong = False
    for name, (table, always) in TRIGGERS.items():
        enabled = found.get((name, table))
        if enabled not in (("A",) if always else ("A", "O")):
            wrong = True
            what = "is not there" if enabled is None else "does not fire"
            do = (
                f"ALTER TABLE {table} ENABLE {'ALWAYS ' if always else ''}TRIGGER {name}; find out who switched it off."
            )
            yield fail("triggers", f"The trigger {name} on {table} {what}.", do)
    if not wrong:
        yield ok("triggers", "the audit log and the tally are kept")
