"""Hosts of a network of their own: network namespaces joined by a bridge that lies in the database's namespace.

Nothing of it is reached from outside this machine, nor from its ordinary network. Needs root and iproute2.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DATABASE_ADDRESS = "10.77.0.1"
NETWORK = "10.77.0.0/24"
CLONE_NEWNET = 0x40000000


class NotPermittedError(Exception):
    """Why there can be no such network here, for whoever reads the skipped tests."""


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotPermittedError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


class Network:
    """`hosts` by number from 1; each has a cable, which can be cut."""

    def __init__(self, name: str, hosts: int) -> None:
        if shutil.which("ip") is None:
            raise NotPermittedError("iproute2 is not installed")
        if os.geteuid() != 0:
            raise NotPermittedError("network namespaces need root")
        self.name, self.hosts = name, range(1, hosts + 1)

    def namespace(self, host: int) -> str:
        """0 is the database's."""
        return f"{self.name}-{host}"

    def make(self) -> None:
        self.remove()
        hub = self.namespace(0)
        ip("netns", "add", hub)
        ip("-n", hub, "link", "set", "lo", "up")
        ip("-n", hub, "link", "add", "hub", "type", "bridge")
        ip("-n", hub, "addr", "add", f"{DATABASE_ADDRESS}/24", "dev", "hub")
        ip("-n", hub, "link", "set", "hub", "up")
        for host in self.hosts:
            there = self.namespace(host)
            ip("netns", "add", there)
            ip("-n", hub, "link", "add", f"to{host}", "type", "veth", "peer", "name", "eth0", "netns", there)
            ip("-n", hub, "link", "set", f"to{host}", "master", "hub", "up")
            ip("-n", there, "link", "set", "lo", "up")
            ip("-n", there, "addr", "add", f"10.77.0.{10 + host}/24", "dev", "eth0")
            ip("-n", there, "link", "set", "eth0", "up")

    def cut(self, host: int) -> None:
        """Nothing comes or goes, and nobody is told: the cable's far end is dead, the host's own card stays up."""
        ip("-n", self.namespace(0), "link", "set", f"to{host}", "nomaster")

    def heal(self, host: int) -> None:
        ip("-n", self.namespace(0), "link", "set", f"to{host}", "master", "hub")

    def remove(self) -> None:
        for host in (*self.hosts, 0):
            with suppress(NotPermittedError):
                ip("netns", "del", self.namespace(host))

    @contextmanager
    def on(self, host: int) -> Iterator[None]:
        """What this thread starts inside runs on that host: a child inherits the namespace of who starts it."""
        libc = ctypes.CDLL(None, use_errno=True)
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(Path("/run/netns") / self.namespace(host), os.O_RDONLY)
        try:
            if libc.setns(there, CLONE_NEWNET):
                raise NotPermittedError(os.strerror(ctypes.get_errno()))
            yield
        finally:
            libc.setns(here, CLONE_NEWNET)
            os.close(here)
            os.close(there)
