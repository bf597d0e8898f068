"""The whole site for the benchmarks of intake: database, web server, workers, mail sink; real processes, as shipped.

The database is the benchmarks' own server, which has stock settings: each commit is on disk before it is answered.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks import server
from winecellar.embedded import ROOT

DATABASE = "bench-intake"
READY_SECONDS = 60.0
FILL = "tests.benchmarks.site_fill"


class Process:
    """A process with its output in a file; ended by its id."""

    def __init__(self, command: Sequence[str], *, keeps: Sequence[int] = (), **environment: str) -> None:
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by stop)
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=_environment() | environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=keeps,
        )

    def said(self) -> str:
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not become ready:\n{self.said()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def _environment() -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_URL", "DJANGO_"))},
        "DATABASE_URL": url(),
        "DJANGO_SETTINGS_MODULE": "winecellar.settings",
        "LOG_LEVEL": "WARNING",
        "PYTHONUNBUFFERED": "1",
        "FEED_REQUESTS_PER_MINUTE": "100000000",
        "WORKER_LISTEN": "true",
    }


def url() -> str:
    return server.url(DATABASE).replace("postgresql", "postgres")


def fill(wines: int, alerts: int) -> list[str]:
    """An empty site with so many wines and watched ones among them; returns the merchants' keys."""
    server.create(DATABASE)
    done = subprocess.run(
        [sys.executable, "-m", FILL, str(wines), str(alerts)],
        cwd=ROOT,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    keys: list[str] = json.loads(done.stdout.splitlines()[-1])
    server.execute("VACUUM ANALYZE", DATABASE)
    return keys


@contextmanager
def web(application: str, path: str, **environment: str) -> Iterator[int]:
    """gunicorn with the project's configuration; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        command = ["-m", "gunicorn", "-c", "winecellar/gunicorn_conf.py", application]
        bound = f"fd://{listener.fileno()}"
        process = Process(command, keeps=[listener.fileno()], BIND=bound, **environment)
    try:
        process.wait_until(lambda: _answers(port, path), application)
        yield port
    finally:
        process.stop()


@contextmanager
def workers(count: int, smtp_port: int) -> Iterator[None]:
    mail = f"smtp://127.0.0.1:{smtp_port}"
    started = [Process(["manage.py", "run_worker"], EMAIL_URL=mail) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.stop()


@contextmanager
def mail_sink(log: Path, *brownouts: str) -> Iterator[int]:
    """The demo's mail sink; yields its SMTP port."""
    command = ["-m", "winecellar.demo.mail_sink", "--log", str(log), *brownouts]
    process = Process(command)
    try:
        process.wait_until(lambda: process.said().rstrip().endswith("}"), "the mail sink")
        yield int(json.loads(process.said().splitlines()[-1])["smtp_port"])
    finally:
        process.stop()


def _answers(port: int, path: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            return connection.recv(12).startswith(b"HTTP/1.1 ")
    except OSError:
        return False
