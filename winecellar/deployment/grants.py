"""Makes the database's roles, and gives each its rights: all of it can be run again, and only says what is so.

Guarantee: after `grant` every table, whoever added it, is as roles.py says, and so is every one that its owner makes
later. Called by `manage.py make_roles`, after each migrate, by the demo and the tests.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from psycopg import sql

from winecellar.deployment.roles import EVERYTHING, OWNERS_FUNCTIONS, PROCESSES, Role, name, rule_of

TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND NOT relispartition ORDER BY 1
"""
MONTHS = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relispartition"
# Sequences that belong to a column follow their table.
NOT_YET_OWNED = """
SELECT 'TABLE', relname, '' FROM pg_class c
WHERE relnamespace = 'public'::regnamespace AND relowner <> %(owner)s::regrole
  AND (relkind IN ('r', 'p') OR relkind = 'S' AND NOT EXISTS (
    SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')))
UNION ALL
SELECT 'FUNCTION', proname, pg_get_function_identity_arguments(p.oid) FROM pg_proc p
WHERE pronamespace = 'public'::regnamespace AND proowner <> %(owner)s::regrole
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""


def make_roles(prefix: str) -> list[str]:
    """Make the roles that are missing, give the owner what is there, and grant. Returns the new roles' names.

    Needs a superuser, or whoever owns the database and may create roles. New roles may log in and have no password.
    """
    made = []
    with transaction.atomic(), connection.cursor() as cursor:
        for role in Role:
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [name(prefix, role)])
            if cursor.fetchone() is None:
                _run(cursor, "CREATE ROLE {} LOGIN", name(prefix, role))
                made.append(name(prefix, role))
        owner = name(prefix, Role.OWNER)
        _run(cursor, "GRANT {}, {} TO {}", *(name(prefix, each) for each in (*PROCESSES, Role.ADMIN)))
        _run(cursor, "GRANT {} TO CURRENT_USER", owner)
        _run(cursor, "GRANT USAGE, CREATE ON SCHEMA public TO {}", owner)
        cursor.execute(NOT_YET_OWNED, {"owner": owner})
        for kind, what, arguments in cursor.fetchall():
            signature = sql.SQL(f"({arguments})") if kind == "FUNCTION" else sql.SQL("")
            statement = sql.SQL("ALTER {} {}{} OWNER TO {}")
            cursor.execute(
                statement.format(sql.SQL(kind), sql.Identifier(what), signature, sql.Identifier(owner))  # type: ignore[arg-type]
            )
        _fence_off(cursor, prefix)
        grant(prefix)
    _let_see_sessions(prefix)
    return made


def grant(prefix: str) -> None:
    """Give every role its rights on all that is there, and on what the owner will make. Needs the owner's rights."""
    with transaction.atomic(), connection.cursor() as cursor:
        owner = name(prefix, Role.OWNER)
        who = [name(prefix, role) for role in PROCESSES]
        for what, rights in (("TABLES", EVERYTHING), ("SEQUENCES", "USAGE, SELECT")):
            default = f"ALTER DEFAULT PRIVILEGES FOR ROLE {{}} IN SCHEMA public GRANT {rights} ON {what} TO {{}}, {{}}"
            _run(cursor, default, owner, *who)
        _run(cursor, "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {}, {}", *who)
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            _grant_table(cursor, prefix, table)
        cursor.execute(MONTHS)
        for (month,) in cursor.fetchall():
            for role in (*PROCESSES, Role.ADMIN, Role.READ):
                _run(cursor, "REVOKE ALL ON {} FROM {}", month, name(prefix, role))
        for function, roles in OWNERS_FUNCTIONS.items():
            for role in roles:
                _run(cursor, f"GRANT EXECUTE ON FUNCTION {function} TO {{}}", name(prefix, role))


def follow_code(**_: Any) -> None:
    """After each migrate: where the roles exist and we are their owner, new tables get what roles.py says of them."""
    prefix = settings.DATABASE_ROLES
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) = %s AND bool_or(rolname = %s AND pg_has_role(oid, 'MEMBER')"
            "   AND (SELECT relowner FROM pg_class WHERE oid = to_regclass('jobs_audit')) = oid)"
            " FROM pg_roles WHERE rolname = ANY(%s)",
            [len(Role), name(prefix, Role.OWNER), [name(prefix, role) for role in Role]],
        )
        (ours,) = cursor.fetchone()
        cursor.execute(
            "SELECT bool_and(to_regprocedure(f) IS NOT NULL) FROM unnest(%s::text[]) f", [list(OWNERS_FUNCTIONS)]
        )
        (whole,) = cursor.fetchone()  # not so while somebody migrates backwards
    if ours and whole:
        grant(prefix)


def _grant_table(cursor: Any, prefix: str, table: str) -> None:
    rule = rule_of(table)
    for role in (*PROCESSES, Role.ADMIN, Role.READ):
        rights = rule.of(role) if rule else EVERYTHING if role in PROCESSES else ""
        _run(cursor, "REVOKE ALL ON {} FROM {}", table, name(prefix, role))
        if rights:
            _run(cursor, f"GRANT {rights} ON {{}} TO {{}}", table, name(prefix, role))


def _fence_off(cursor: Any, prefix: str) -> None:
    """Nobody else connects or makes tables, and a process's statements end; the owner's do not wait for locks."""
    cursor.execute("SELECT current_database()")
    (database,) = cursor.fetchone()
    _run(cursor, "REVOKE ALL ON DATABASE {} FROM PUBLIC", database)
    _run(cursor, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    for role in Role:
        _run(cursor, "GRANT CONNECT ON DATABASE {} TO {}", database, name(prefix, role))
        _run(cursor, "GRANT USAGE ON SCHEMA public TO {}", name(prefix, role))
    for role in (Role.WORKER, Role.OWNER):  # a projection that is made anew is compared in a temporary table
        _run(cursor, "GRANT TEMPORARY ON DATABASE {} TO {}", database, name(prefix, role))
    web_limit = int(settings.WEB_STATEMENT_LIMIT.total_seconds() * 1000)
    _run(
        cursor,
        f"ALTER ROLE {{}} IN DATABASE {{}} SET statement_timeout = {web_limit}",
        name(prefix, Role.WEB),
        database,
    )
    _run(
        cursor, "ALTER ROLE {} IN DATABASE {} SET default_transaction_read_only = on", name(prefix, Role.READ), database
    )


def _let_see_sessions(prefix: str) -> None:
    """The gauges name the session that holds up vacuum; without this they only say that there is one."""
    for role in (Role.WEB, Role.WORKER, Role.READ):
        with suppress(ProgrammingError), transaction.atomic(), connection.cursor() as cursor:
            _run(cursor, "GRANT pg_read_all_stats TO {}", name(prefix, role))


def _run(cursor: Any, statement: str, *names: str) -> None:
    cursor.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))  # type: ignore[arg-type]
