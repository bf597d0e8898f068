"""The site's processes, as they are deployed, and their keeper, which starts again what has died, as systemd does. The
providers are nobody's to restart: the mail's is a thread of this process, the payments' a process (bank.py).

Guarantee: what was started here is ended by `stop`, by its id. The web server and the worker that are numbered last
reach Postgres over a network that can be broken; all others by its socket.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.chaos import bank
from tests.chaos.cluster import DATABASE, ChaosCluster
from tests.chaos.fill import PEOPLE
from tests.chaos.network import Network
from winecellar.demo import ports
from winecellar.demo.mail_api import ApiServer, Taken
from winecellar.demo.mail_script import Script
from winecellar.embedded import ROOT

KEEPER_SECONDS = 0.3
GRACE_SECONDS = 25.0


@dataclass
class Kept:
    """One process that is to run all the time, unless it is `held`. `ended`: how often it ended with which code."""

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    held: bool = False
    ended: Counter[int] = field(default_factory=Counter)

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process and self.process.poll() is None else None


class Site:
    def __init__(
        self, server: ChaosCluster, folder: Path, *, lease: float, workers: int = 4, whole: bool = True, seed: int = 0
    ) -> None:
        self.server, self.folder, self.lease = server, folder, lease
        self.network = Network(f"{server.socket_dir}/.s.PGSQL.5432")
        self.provider = ApiServer(0, Taken(folder / "mails.jsonl"), Script()).start()
        self.naps = folder / "naps.jsonl"
        self.naps.touch()
        self.postgres_wanted = threading.Event()  # clear while somebody keeps it down on purpose
        self.postgres_wanted.set()
        self.alone = threading.Lock()  # who changes the server as a whole
        self._stopping = threading.Event()
        free = iter(_free_ports(2))
        self.web_ports = [next(free), next(free)] if whole else []
        some = {"people": PEOPLE, "ports": self.web_ports, "seed": str(seed)}
        self.payments = bank.Payments(folder, **some) if whole else None
        self.kept: list[Kept] = []
        through = f"postgres://postgres@127.0.0.1:{self.network.port}/{DATABASE}"
        direct = server.url(DATABASE)
        web = ["-m", "gunicorn", "winecellar.wsgi", "-c", "winecellar/gunicorn_conf.py"]
        for number, port in enumerate(self.web_ports):
            url = through if number else direct
            self._add(f"web-{number}", web, DATABASE_URL=url, BIND=f"127.0.0.1:{port}", **WEB)
        for number in range(workers):
            url = through if whole and number == workers - 1 else direct
            self._add(f"worker-{number}", ["manage.py", "run_worker"], DATABASE_URL=url)
        if whole:
            for number in range(2):
                self._add(f"scheduler-{number}", ["manage.py", "run_scheduler"], DATABASE_URL=direct)
            self._add("watchman", ["manage.py", "run_watchman"], DATABASE_URL=direct)
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def _add(self, name: str, command: Sequence[str], **environment: str) -> None:
        self.kept.append(
            Kept(
                name,
                command,
                {
                    **os.environ,
                    "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
                    "EMAIL_URL": f"resend://chaos@127.0.0.1:{self.provider.port}/?tls=false",
                    "PAYMENTS_URL": self.payments.url if self.payments else "",
                    "PAYMENTS_WEBHOOK_SECRET": bank.SECRET,
                    "CHAOS_LEASE": str(self.lease),
                    "CHAOS_NAPS": str(self.naps),
                    "WORKER_LISTEN": "true",
                    "LOG_LEVEL": "WARNING",
                    "PYTHONUNBUFFERED": "1",
                    "PYTHONFAULTHANDLER": "",
                    **environment,
                },
            )
        )

    def start(self) -> None:
        self._keeper.start()
        self.wait(self.is_up, 120.0, "the site is up")

    def is_up(self) -> bool:
        return all(answers(port) for port in self.web_ports) and all(kept.pid for kept in self.kept)

    def workers(self) -> list[Kept]:
        return [kept for kept in self.kept if kept.name.startswith("worker")]

    def named(self, prefix: str, choice: float) -> Kept:
        """One of those with this name; `choice` in [0, 1)."""
        some = [kept for kept in self.kept if kept.name.startswith(prefix)]
        return some[int(choice * len(some))]

    def execute(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        with self.server.connect() as connection:
            cursor = connection.execute(sql, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def database_answers(self) -> bool:
        try:
            return bool(self.execute("SELECT 1"))
        except psycopg.Error:
            return False

    def wait(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds:.0f} s: {what}. Logs are in {self.folder}")
            time.sleep(0.1)

    def _keep(self) -> None:
        while not self._stopping.wait(KEEPER_SECONDS):
            if self.postgres_wanted.is_set() and self.server.postmaster() is None:
                with suppress(RuntimeError):  # its disk may be full still
                    self.server.start()
            for kept in self.kept:
                if kept.process is not None and kept.process.poll() is None:
                    continue
                if kept.process is not None:
                    kept.ended[kept.process.returncode] += 1
                    kept.process = None
                if not self._stopping.is_set() and not kept.held:
                    kept.process = self._spawn(kept)

    def _spawn(self, kept: Kept) -> subprocess.Popen[bytes]:
        with (self.folder / f"{kept.name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *kept.command],
                cwd=ROOT,
                env=kept.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self) -> None:
        self._stopping.set()
        if self._keeper.is_alive():
            self._keeper.join()
        alive = [kept.process for kept in self.kept if kept.process and kept.process.poll() is None]
        family = [pid for process in alive for pid in descendants(process.pid)]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for process in alive:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.1))
        for pid in family:
            send(pid, signal.SIGKILL)
        for process in alive:
            process.wait()
        if self.payments:
            self.payments.stop()
        self.provider.shutdown()
        self.provider.server_close()
        self.network.close()


# One process with few threads each: two servers are what there is two of.
WEB = {"WEB_CONCURRENCY": "1", "WEB_THREADS": "4"}


def descendants(pid: int) -> list[int]:
    """The process and all below it, those first that are lowest."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        children = []
    return [*(each for child in children for each in descendants(int(child))), pid]


def send(pid: int, number: int) -> bool:
    """Whether it was there to be signalled."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def answers(port: int) -> bool:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_ports(count: int) -> list[int]:
    start, found = 20_000 + os.getpid() % 20_000, []
    while len(found) < count:
        start = ports.next_free(start) or 10_000
        found.append(start)
    return found
