"""A database on a network of its own, with logical decoding, and hosts around it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.hosts.network import DATABASE_ADDRESS, NETWORK, Network, NotPermittedError
from tests.processes.cluster import Sandbox
from tests.processes.conftest import processes
from winecellar.embedded import Cluster

__all__ = ["processes"]
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")


@dataclass(frozen=True)
class Served(Cluster):
    """The embedded server with logical decoding; `address` is where it listens beside its socket, if anywhere."""

    address: str = ""

    def _initialise(self) -> None:
        super()._initialise()
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {NETWORK} trust\n")

    def _write_settings(self) -> None:
        super()._write_settings()
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("wal_level = logical\nshared_buffers = '32MB'\n")

    def _pg_ctl(self, action: str, *arguments: str, check: bool = True) -> None:
        told = [argument.replace("-h ''", f"-h '{self.address}'") for argument in arguments]
        super()._pg_ctl(action, *told, check=check)


@pytest.fixture(scope="session")
def possible_network() -> Iterator[Network | str]:
    """The network, or why there is none."""
    made = None
    try:
        made = Network(f"wc{WORKER}", hosts=3)
        made.make()
    except NotPermittedError as why:
        yield f"three hosts cannot be made here: {why}"
    else:
        yield made
    if made:
        made.remove()


@pytest.fixture(scope="session")
def database(possible_network: Network | str) -> Iterator[Sandbox]:
    """On the network where there is one; always at its socket."""
    if isinstance(possible_network, Network):
        made = Sandbox(Served(f"hosts-{WORKER}", address=DATABASE_ADDRESS))
        with possible_network.on(0):
            made.prepare()
    else:
        made = Sandbox(Served(f"hosts-{WORKER}"))
        made.prepare()
    yield made
    made.destroy()


@pytest.fixture
def network(possible_network: Network | str) -> Network:
    if isinstance(possible_network, str):
        pytest.skip(possible_network)
    return possible_network


@pytest.fixture
def environment(database: Sandbox) -> dict[str, Any]:
    """What a worker on a host is told: the database by its address."""
    return {**database.environment, "DATABASE_URL": f"postgres://postgres@{DATABASE_ADDRESS}/sandbox"}
