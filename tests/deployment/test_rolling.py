"""The release before and this one, side by side: web servers and workers of both, while merchants send prices.

The release before is the code as it was when its schema was last the newest: the parent of the commit that brought the
newest migration. It is taken from git, so a clone without history skips this, and says so.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from tests.processes.conftest import ROOT, Processes, database_url, wait_until
from winecellar.demo.feed_client import FeedClient, Observation, write_body

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]
NAME = f"rolling_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
MERCHANT = "mch_082"


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    return done.stdout.decode().strip() if done.returncode == 0 else ""


def release_before() -> str:
    """The commit, or "" where the history does not reach so far."""
    along = ("log", "-1", "--first-parent", "--diff-merges=first-parent", "--diff-filter=A", "--format=%H")
    newest = git(*along, "--", ":(glob)**/migrations/0*.py").partition("\n")[0]
    return git("rev-parse", "--verify", "--quiet", f"{newest}^") if newest else ""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Its code."""
    commit = release_before()
    if not commit:
        pytest.skip("this clone has no history: the release before cannot be taken from it (git fetch --unshallow)")
    folder = tmp_path / "old"
    folder.mkdir()
    archive = tmp_path / "old.tar"
    git("archive", "--output", str(archive), commit)
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    return folder


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own, on the tests' server."""
    base = database_url()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {NAME}")
    yield base.replace(f"/{connection.settings_dict['NAME']}", f"/{NAME}", 1)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")


class Merchant(threading.Thread):
    """Sends a price after the other to whichever web server answers, and remembers what was promised."""

    def __init__(self, key: str, wines: list[str]) -> None:
        super().__init__(daemon=True)
        self._key, self._wines = key, wines
        self.ports: list[int] = []
        self.promised: list[str] = []
        self.complaints: list[str] = []
        self.done = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.done.is_set():
            number += 1
            price = Observation(self._wines[number % len(self._wines)], Decimal(100 + number % 50), datetime.now(UTC))
            self._send(write_body([price]), f"{number}")
            time.sleep(0.01)

    def _send(self, body: bytes, idempotency_key: str) -> None:
        """Until somebody answers, as a merchant does; a new deployment takes its servers away in the middle."""
        while not self.done.is_set():
            client = FeedClient(host="127.0.0.1", port=self.ports[-1], key=self._key)
            try:
                answer = client.post(body, idempotency_key=idempotency_key)
            except OSError:
                continue
            finally:
                client.close()
            if answer.accepted:
                self.promised += answer.body.get("event_ids", [])
                return
            if not answer.come_again:
                self.complaints.append(answer.complaint)
                return


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Release:
    """Its processes, started from its folder."""

    def __init__(self, folder: Path, url: str, logs: Path) -> None:
        self.folder, self.url, self.logs = folder, url, logs
        self.environment = {**os.environ, "DATABASE_URL": url, "LOG_LEVEL": "INFO", "EMAIL_URL": "memorymail://"}
        self.environment.pop("PYTHONPATH", None)
        self.running: list[subprocess.Popen[bytes]] = []

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def start(self, *command: str, **more: str) -> subprocess.Popen[bytes]:
        with (self.logs / f"{self.folder.name}-{len(self.running)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *command], cwd=self.folder, env={**self.environment, **more}, stdout=log, stderr=log
            )
        self.running.append(process)
        return process

    def work(self) -> None:
        self.start("manage.py", "run_worker")

    def serve(self) -> int:
        port = free_port()
        self.start(
            "-m", "gunicorn", "winecellar.wsgi", "-c", "winecellar/gunicorn_conf.py",
            BIND=f"127.0.0.1:{port}", WEB_CONCURRENCY="1",
        )  # fmt: skip
        wait_until(lambda: answers(port), seconds=60, what=f"{self.folder.name}'s web server answers")
        return port

    def end(self) -> list[int]:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(timeout=60) for process in self.running]
        self.running.clear()
        return codes

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.logs.glob(f"{self.folder.name}-*.log")))


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def releases(old: Path, url: str, tmp_path: Path) -> Iterator[tuple[Release, Release]]:
    both = Release(old, url, tmp_path), Release(ROOT, url, tmp_path)
    yield both
    for release in both:
        for process in release.running:
            process.kill()
            process.wait()


def test_while_a_release_follows_the_other_no_price_is_refused_lost_or_taken_twice(
    releases: tuple[Release, Release], url: str, processes: Processes
) -> None:
    before, after = releases
    before.manage("migrate", "-v", "0")
    before.manage("load_demo_catalogue")
    key = before.manage("create_feed_key", MERCHANT).split()[-1]
    with psycopg.connect(url, autocommit=True) as database:
        wines = [wine for (wine,) in database.execute("SELECT id FROM pricing_wine ORDER BY id LIMIT 40")]
        merchant = Merchant(key, wines)
        merchant.ports.append(before.serve())
        before.work()
        merchant.start()

        def sent(more: int) -> None:
            goal = len(merchant.promised) + more
            wait_until(
                lambda: len(merchant.promised) >= goal or merchant.complaints, seconds=60, what=f"{more} more prices"
            )

        sent(50)
        after.manage("migrate", "-v", "0")  # the old code runs on the new schema
        sent(50)
        after.work()  # both workers ...
        sent(50)
        merchant.ports.append(after.serve())  # ... and both web servers
        sent(50)
        assert before.end() == [0, 0]
        sent(50)
        merchant.done.set()
        merchant.join(30)
        assert merchant.complaints == []
        promised = sorted(merchant.promised)
        assert len(promised) == len(set(promised)) >= 250

        def kept() -> list[str]:
            return sorted(
                event_id
                for (event_id,) in database.execute(
                    "SELECT event_id FROM pricing_pricehistory WHERE event_id = ANY(%s)", [merchant.promised]
                )
            )

        wait_until(lambda: len(kept()) >= len(promised), seconds=60, what="all are in the history")
        assert kept() == promised
        assert database.execute("SELECT count(*) FROM jobs_deadletter").fetchone() == (0,)
    assert after.end() == [0, 0]
    for release in releases:
        assert "Traceback" not in release.log(), release.log()[-3000:]
