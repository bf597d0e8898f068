"""A database whose processes have roles of their own, as a deployment's do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from django.db import ProgrammingError, connection

from tests.processes.conftest import processes
from winecellar.deployment.grants import make_roles
from winecellar.deployment.roles import Role, name

__all__ = ["processes"]
# Roles are the whole server's, so each test process has its own.
PREFIX = f"wctest_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
As = Callable[[Role], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def roles(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Made for a module's tests and removed without a trace: the database is shared with all the others."""
    with django_db_blocker.unblock():
        try:
            make_roles(PREFIX)
        except ProgrammingError as why:
            pytest.skip(f"the tests' database user may not make roles: {why}")
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(f"REASSIGN OWNED BY {name(PREFIX, Role.OWNER)} TO CURRENT_USER")
        for role in Role:
            cursor.execute(f"DROP OWNED BY {name(PREFIX, role)}")
        for role in Role:
            cursor.execute(f"DROP ROLE {name(PREFIX, role)}")
        cursor.execute(f'GRANT CONNECT, TEMPORARY ON DATABASE "{connection.settings_dict["NAME"]}" TO PUBLIC')


@pytest.fixture
def acting(roles: None, db: None) -> As:
    """`with acting(Role.WEB):` all that this thread asks of the database, it asks with the web server's rights."""

    @contextmanager
    def act(role: Role) -> Iterator[None]:
        with connection.cursor() as cursor:
            cursor.execute(f"SET ROLE {name(PREFIX, role)}")
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET ROLE")

    return act
