"""The database's roles, and which of them may do what with which table. Pure: no Django, no connection.

Guarantee: a table that nobody has thought of yet is written and read by web and worker, like most, and is hidden from
the read-only role; whatever must not be like that stands below, with its reason. Used by grants.py and the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """`OWNER` migrates and owns; `ADMIN` is operators at a terminal; `READ` sees neither people nor secrets."""

    OWNER = "owner"
    WEB = "web"
    WORKER = "worker"
    ADMIN = "admin"
    READ = "read"


# The processes' own, which are granted something on each table. Admin is a member of both.
PROCESSES = (Role.WEB, Role.WORKER)
EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
APPEND = "SELECT, INSERT"
LOOK = "SELECT"
LEDGER = "SELECT, INSERT, DELETE, UPDATE (processed_at)"
NOTHING = ""


@dataclass(frozen=True)
class Rule:
    """For tables whose whole name matches. `admin`: beyond what it has as a member of web and worker."""

    tables: str
    why: str
    web: str = EVERYTHING
    worker: str = EVERYTHING
    admin: str = NOTHING
    read: str = NOTHING

    def of(self, role: Role) -> str:
        return {Role.WEB: self.web, Role.WORKER: self.worker, Role.ADMIN: self.admin, Role.READ: self.read}[role]


# The first that matches counts.
RULES = (
    Rule("jobs_audit|jobs_message", "what was done and said is never rewritten", web=APPEND, worker=APPEND),
    Rule("django_migrations|django_content_type", "follows the code, by migrate", web=LOOK, worker=LOOK, read=LOOK),
    # To purge it row by row it is locked row by row, which asks for a right to change some column.
    Rule("processed_messages", "only who acks writes the ledger", web=LOOK, worker=LEDGER, read=LOOK),
    Rule("jobs_(lock|process|breaker|rate)", "only who works holds locks", web=LOOK, read=LOOK),
    Rule("jobs_(redrive|deadletter)", "letters hold what merchants and people sent"),
    Rule(
        "pricing_(pricehistory|availability)",
        "appended from the log; only an operator makes it anew",
        web=LOOK,
        worker=APPEND,
        admin="UPDATE, DELETE",
        read=LOOK,
    ),
    Rule("pricing_(dailyprice|winedocument|searchword)", "projections, made by their consumers", web=LOOK, read=LOOK),
    Rule("pricing_(feedkey|signingsecret|feedrate)", "only the web server knows merchants by them", worker=NOTHING),
    Rule("pricing_(rawbody|feedanswer|cataloguepiece|stage_.*)", "what merchants sent, as it came"),
    Rule("account_emailaddress", "no alert before it is confirmed; only the web server confirms it", worker=LOOK),
    Rule("mfa_authenticator|account_.*", "only the web server signs people in", worker=NOTHING),
    Rule("cellars_(night|nightprice)", "made by the night's run", web=LOOK, read=LOOK),
    Rule("cellars_valuation(lines)?", "made by the night's run; gone with its cellar", web="SELECT, DELETE"),
    # From here on the rule is the ordinary one; what it says is who else may look.
    Rule("(pricing|jobs)_.*", "wines, prices and the queue are no secret", read=LOOK),
    Rule("(accounts|alerts|cellars|purchases|auth|django)_.*", "people, and what is theirs"),
)
# Functions that act as the owner. Everything else may be called by all who reach the database.
OWNERS_FUNCTIONS = {
    "jobs_make_months(integer)": (Role.WEB, Role.WORKER),
    "jobs_drop_months(timestamptz)": (Role.WORKER,),
    "jobs_analyze(regclass[])": (Role.WORKER,),
    "pricing_stage_create(text)": PROCESSES,
    "pricing_stage_finish(text)": PROCESSES,
    "pricing_stage_drop(text)": PROCESSES,
}
# A column so named is a secret, or leads to one: the table must have a rule that hides it from the read-only role.
SECRET_COLUMN = re.compile(r"(?:^|_)(?:password|secret|sha256|sealed|session_data|token|key)(?:_|$)")


def rule_of(table: str) -> Rule | None:
    """What holds for this table; None when nothing was said, and the ordinary rule counts."""
    return next((rule for rule in RULES if re.fullmatch(rule.tables, table)), None)


def name(prefix: str, role: Role) -> str:
    return f"{prefix}_{role.value}"
