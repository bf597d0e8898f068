"""Real processes against the test database: started, watched with deadlines, ended by pid."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from tests.jobs.conftest import queue_db, send

__all__ = ["queue_db", "send"]
ROOT = Path(__file__).resolve().parents[2]


def database_url() -> str:
    """The database this test process uses, as a DATABASE_URL."""
    params = connection.get_connection_params()
    user, password = params.get("user", ""), params.get("password", "")
    host, port = str(params.get("host", "")), params.get("port", "")
    who = f"{quote(user)}:{quote(password)}@" if password else f"{quote(user)}@"
    if host.startswith("/") or not host:
        return f"postgres://{who}/{params['dbname']}?host={quote(host)}"
    return f"postgres://{who}{host}{f':{port}' if port else ''}/{params['dbname']}"


def wait_until(condition: Callable[[], Any], *, seconds: float = 30.0, what: str = "") -> Any:
    """Poll until the condition is true and return it; fail with `what` after the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what or condition}")
        time.sleep(0.02)


def children(process: subprocess.Popen[bytes]) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return []


def is_running(pid: int) -> bool:
    """Whether the process is there and not a zombie, whoever should have waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Processes:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{len(self.running)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={
                **os.environ,
                "DATABASE_URL": database_url(),
                "WORKER_LISTEN": "true",
                "LOG_LEVEL": "INFO",
                **environment,
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        self.running.append(process)
        return process

    def worker(self, *subscriptions: str, **environment: str) -> subprocess.Popen[bytes]:
        process = self.start("manage.py", "run_worker", *subscriptions, **environment)
        wait_until(lambda: "worker.started" in self.log(process), what="the worker starts")
        return process

    def log(self, process: subprocess.Popen[bytes]) -> str:
        return (self.folder / f"{self.running.index(process)}.log").read_text()

    def end(self) -> None:
        """Kill them with their children, and wait until none is left: an orphan would work in the next test."""
        pids = [pid for process in self.running if process.poll() is None for pid in (process.pid, *children(process))]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.running:
            process.wait()
        wait_until(lambda: not any(map(is_running, pids)), what="the processes and their children end")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end()
