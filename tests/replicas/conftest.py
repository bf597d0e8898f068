"""A site that reads from a real replica, and what each of its pages asked whom."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import environ
import pytest
from django.db import connection, connections
from django.test import Client

from tests.cast import person
from tests.pages.cellar import fill_cellar
from tests.processes.conftest import wait_until
from tests.replicas.standby import NoCopyPossibleError, Standby, make_standby
from winecellar import settings as project
from winecellar.accounts.models import User
from winecellar.replicas import middleware
from winecellar.replicas.standby import Standby as Replica

ALIAS = "replica0"


@pytest.fixture(scope="package")
def server(django_db_setup: None, django_db_blocker: Any) -> Iterator[Standby]:
    """One server for all of them: what they stop, they start again."""
    with django_db_blocker.unblock():
        try:
            made = make_standby(f"standby-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}")
        except NoCopyPossibleError as why:
            pytest.skip(f"no replica can be made of this server: {why}")
    # Django's tests let nobody near a database that was not known before they began.
    url = environ.Env.db_url_config(made.url(made.database))
    connections.settings[ALIAS] = {
        **connections.settings["default"],
        **url,
        "OPTIONS": {**project.REPLICA_CONNECTION, **url.get("OPTIONS", {})},
        "CONN_HEALTH_CHECKS": False,
        "TEST": {**connections.settings["default"]["TEST"], "MIRROR": "default"},
    }
    yield made
    del connections.settings[ALIAS]
    made.destroy()


@pytest.fixture
def replica(server: Standby, transactional_db: None, settings: Any) -> Iterator[Standby]:
    """The site's settings as DATABASE_REPLICA_URLS would make them, with a replica that has all there is."""
    server.start()
    settings.REPLICAS = {ALIAS: connections.settings[ALIAS]}
    settings.REPLICA_MARK_INTERVAL = timedelta(0)
    settings.REPLICA_MAX_LAG = timedelta(hours=1)
    settings.REPLICA_ANSWER_TIME = timedelta(seconds=5)  # two busy cores are no broken replica
    settings.DATABASE_ROUTERS = ["winecellar.replicas.router.ReplicaRouter"]
    middleware.standbys.cache_clear()
    fill_cellar()
    server.catch_up()
    (only,) = middleware.standbys()
    wait_until(lambda: only.has_replayed(0), what="the site has found the replica")
    yield server
    connections[ALIAS].close()
    del connections[ALIAS]
    middleware.standbys.cache_clear()


@pytest.fixture
def alice(replica: Standby) -> User:
    return person("alice")


@pytest.fixture
def as_alice(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def stranger(replica: Standby) -> Client:
    return Client()


@dataclass
class Seen:
    """A page, and the statements that made it."""

    text: str
    on_primary: list[str]
    on_replica: list[str]
    how_far: int  # how often the replica was asked how far it is


Look = Callable[..., Seen]


@pytest.fixture
def look(replica: Standby, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Load a page as this client, and see which server answered for it. `instead` runs before each statement that goes
    to the replica."""

    def look_at(client: Client, path: str, instead: Callable[[], None] | None = None) -> Seen:
        on_primary: list[str] = []
        on_replica: list[str] = []
        how_far: list[int] = []
        ask = Replica._ask

        def counted(asked: Replica) -> int | None:
            how_far.append(1)
            return ask(asked)

        def note(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
            there = context["connection"].alias == ALIAS
            (on_replica if there else on_primary).append(sql)
            if there and instead is not None:
                instead()
            return execute(sql, params, many, context)

        with monkeypatch.context() as patch:
            patch.setattr(Replica, "_ask", counted)
            with connection.execute_wrapper(note), connections[ALIAS].execute_wrapper(note):
                response = client.get(path)
        assert response.status_code == 200
        return Seen(response.content.decode(), on_primary, on_replica, len(how_far))

    return look_at
