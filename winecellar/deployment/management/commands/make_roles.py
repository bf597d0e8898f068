from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import ProgrammingError

from winecellar.deployment.grants import make_roles
from winecellar.deployment.roles import Role, name


class Command(BaseCommand):
    help = "Make the database's roles and give each its rights (docs/security.md). Run it as often as you like."

    def handle(self, **_: Any) -> None:
        prefix = settings.DATABASE_ROLES
        try:
            made = make_roles(prefix)
        except ProgrammingError as error:
            raise CommandError(
                f"The database refused: {str(error).splitlines()[0]}. "
                "Run this once as a superuser, or as the database's owner who may create roles."
            ) from error
        for role in made:
            self.stdout.write(f"made {role}, which has no password yet: \\password {role} in psql gives it one")
        there = ", ".join(name(prefix, role) for role in Role)
        self.stdout.write(self.style.SUCCESS(f"All tables are as winecellar/deployment/roles.py says, for {there}."))
