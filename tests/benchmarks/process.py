"""Starts the systems' processes, reads what they cost from /proc, and ends exactly those that it started."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.benchmarks import server
from tests.benchmarks.install import HOME
from tests.benchmarks.systems import OURS, System

TICKS = os.sysconf("SC_CLK_TCK")
COUNTS = HOME / "counts" / server.CLUSTER.data.name


class BenchError(Exception):
    """A system did not do what was asked of it; the text is for the report."""


def environment(system: System, **more: str) -> dict[str, str]:
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("BENCH_", "DATABASE_URL", "DJANGO_"))
    }
    url = server.url(database_of(system))
    ours = {
        "DATABASE_URL": url.replace("postgresql", "postgres"),
        "DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings",
        "LOG_LEVEL": "WARNING",
    }
    return {
        **kept,
        **({} if system.package else ours),
        "BENCH_URL": url,
        "BENCH_COUNTS": str(COUNTS / system.name),
        **more,
    }


def database_of(system: System) -> str:
    return f"bench-{system.name}"


def call(system: System, *arguments: Any, kind: str = "noop", seconds: float = 300.0, **more: str) -> dict[str, Any]:
    """Run one command of the system's script to the end; returns what it prints."""
    words = [*system.command, *map(str, arguments), *([kind] if system.name == OURS else [])]
    try:
        done = subprocess.run(
            words,
            cwd=system.folder,
            env=environment(system, **more),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{arguments[0]} took more than {seconds:.0f} s") from late
    if done.returncode:
        raise BenchError(f"{arguments[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1][:200]}")
    printed = [line for line in done.stdout.splitlines() if line.startswith("{")]
    result: dict[str, Any] = json.loads(printed[-1]) if printed else {}
    return result


class Workers:
    """Some worker processes of one system."""

    def __init__(self, system: System, count: int, kind: str, **more: str) -> None:
        COUNTS.mkdir(parents=True, exist_ok=True)
        for file in COUNTS.glob(f"{system.name}.*"):
            file.unlink()
        self.system = system
        self._errors = (COUNTS / f"{system.name}.log").open("w+")
        self._processes = [
            subprocess.Popen(
                system.work(kind),
                cwd=system.folder,
                env=environment(system, **more),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for _ in range(count)
        ]

    def seen(self) -> int:
        """How many jobs have reached a handler."""
        return sum(
            struct.unpack("<q", data)[0]
            for file in COUNTS.glob(f"{self.system.name}.*.count")
            if len(data := file.read_bytes()) == 8
        )

    def times(self) -> dict[int, float]:
        """When each job first reached a handler, by number; only where BENCH_TIMES was set."""
        began: dict[int, float] = {}
        for file in COUNTS.glob(f"{self.system.name}.*.times"):
            for line in file.read_text().splitlines():
                number, moment = line.split()
                began.setdefault(int(number), float(moment))
        return began

    def check(self) -> None:
        """Raises BenchError if one has ended by itself."""
        for process in self._processes:
            if process.poll() is not None:
                self._errors.seek(0)
                said = self._errors.read().strip().splitlines()
                raise BenchError(f"a worker ended with {process.returncode}: {said[-1][:200] if said else ''}")

    def cpu_seconds(self) -> float:
        """What they and their children have used since they began."""
        return cpu_seconds(*(process.pid for process in self._processes if process.poll() is None))

    def memory_mb(self) -> float:
        """Resident memory of all of them."""
        alive = (process.pid for process in self._processes if process.poll() is None)
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in _trees(*alive))
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self) -> None:
        for number, wait in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            for process in self._processes:
                if process.poll() is None:
                    os.killpg(process.pid, number)
            deadline = time.monotonic() + wait
            while any(p.poll() is None for p in self._processes) and time.monotonic() < deadline:
                time.sleep(0.02)
        self._errors.close()


def cpu_seconds(*pids: int) -> float:
    """Processor time of these processes and all below them, the ended ones included."""
    total = 0
    for pid in _trees(*pids):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended; its parent counts it
            # After the command's name, which may hold spaces: fields 14 to 17 of proc(5), less the 2 before.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(fields[index]) for index in (11, 12, 13, 14))
    return total / TICKS


def server_cpu_seconds() -> float:
    """Processor time of the database server, all its processes together."""
    return cpu_seconds(int((server.CLUSTER.data / "postmaster.pid").read_text().split()[0]))


def _trees(*pids: int) -> Iterator[int]:
    pending = list(pids)
    while pending:
        pid = pending.pop()
        yield pid
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(FileNotFoundError, ProcessLookupError):
                pending.extend(map(int, task.read_text().split()))


@contextmanager
def workers(system: System, count: int, kind: str = "noop", **more: str) -> Iterator[Workers]:
    started = Workers(system, count, kind, **more)
    try:
        yield started
    finally:
        started.stop()
