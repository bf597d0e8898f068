"""Whom this process is to the database, and whether the roles may do what roles.py says and no more."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from winecellar.deployment.doctor.finding import Finding, fail, ok, warn
from winecellar.deployment.doctor.server import ask
from winecellar.deployment.grants import TABLES
from winecellar.deployment.roles import EVERYTHING, PROCESSES, Role, name, rule_of

MAKE = "Run manage.py make_roles as a superuser, and give each process its role in DATABASE_URL (docs/security.md)."
RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")


def who_we_are() -> Iterator[Finding]:
    ((user, superuser, owns),) = ask(
        "SELECT current_user, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), EXISTS"
        " (SELECT FROM pg_class WHERE oid = to_regclass('jobs_audit') AND pg_has_role(relowner, 'USAGE'))"
    )
    if not settings.PRODUCTION:
        yield ok("role", f"{user}, which is as it should be in development")
    elif superuser or owns:
        what = "is a superuser" if superuser else "owns the tables"
        yield warn("role", f"{user} {what}: who breaks into this process can rewrite the audit log.", MAKE)
    else:
        yield ok("role", f"{user}, which owns nothing")


def as_declared() -> Iterator[Finding]:
    prefix = settings.DATABASE_ROLES
    there = {role for (role,) in ask("SELECT rolname FROM pg_roles")}
    if not there >= {name(prefix, role) for role in Role}:
        if settings.PRODUCTION:
            yield warn("roles", f"There are no roles {prefix}_web, {prefix}_worker and so on.", MAKE)
        else:
            yield ok("roles", "none, which is as it should be in development")
        return
    wrong = list(_differences(prefix))
    for table, role, too_much, too_little in wrong:
        facts = [f"may {', '.join(too_much)}"] * bool(too_much) + [f"may not {', '.join(too_little)}"] * bool(
            too_little
        )
        yield fail("roles", f"{role} {' and '.join(facts)} {table}, against roles.py.", "Run manage.py make_roles.")
    if not wrong:
        yield ok("roles", "all tables are as roles.py says")


def _differences(prefix: str) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """By table and role: what it may and should not, and what it should and may not."""
    for (table,) in ask(TABLES):
        rule = rule_of(table)
        for role in (*PROCESSES, Role.READ):
            said = rule.of(role) if rule else EVERYTHING if role in PROCESSES else ""
            wanted = {right.strip() for right in said.split(",") if right.strip() and "(" not in right}
            has = {
                right
                for right, may in ask(
                    "SELECT r, has_table_privilege(%s, %s::regclass, r) FROM unnest(%s::text[]) r",
                    name(prefix, role),
                    table,
                    list(RIGHTS),
                )
                if may
            }
            if has != wanted:
                yield table, name(prefix, role), sorted(has - wanted), sorted(wanted - has)
