"""The Postgres under chaos: the embedded one, durable as shipped, in a folder of its own, its log of commits on a small
disk of its own where this machine lets us make one, so that it can be filled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from winecellar.embedded import SETTINGS, Cluster, _server_user

DATABASE = "chaos"
DISK = "1500m"
BALLAST = bytes(1 << 20)
# Beyond the product's: a deadlock is found soon; each piece of log is a new file, for which a full disk has no room.
CHANGED = {
    "max_connections": "130",
    "deadlock_timeout": "'100ms'",
    "max_wal_size": "'512MB'",
    "min_wal_size": "'32MB'",
    "wal_recycle": "off",
    "log_min_messages": "warning",
}


@dataclass(frozen=True)
class ChaosCluster(Cluster):
    """`changed`: settings beside the embedded server's own."""

    changed: tuple[tuple[str, str], ...] = ()

    @property
    def disk(self) -> Path:
        return self.data.with_name(f"{self.data.name}-wal")

    def _write_settings(self) -> None:
        settings = {**SETTINGS, **CHANGED, **dict(self.changed)}
        path = self.data / "postgresql.auto.conf"
        path.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
        path.chmod(0o644)

    def create(self, *, small_disk: bool = False) -> bool:
        """A new server, running, with an empty database. Whether its log is on a disk that can be filled."""
        self.destroy()
        self.start()
        has_disk = small_disk and self._move_log()
        self.ensure_database(DATABASE)
        return has_disk

    def _move_log(self) -> bool:
        user = _server_user()
        if user is None:
            return False  # only root can mount
        self.disk.mkdir(parents=True, exist_ok=True)
        options = f"size={DISK},uid={user.pw_uid},gid={user.pw_gid},mode=0700"
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.disk)]
        try:
            if subprocess.run(mount, check=False, capture_output=True).returncode:
                return False
        except FileNotFoundError:
            return False
        self.stop()
        log = self.data / "pg_wal"
        shutil.copytree(log, self.disk / "pg_wal")
        for path in (self.disk / "pg_wal", *(self.disk / "pg_wal").rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        shutil.rmtree(log)
        log.symlink_to(self.disk / "pg_wal")
        self.start()
        return True

    def fill_disk(self, seconds: float) -> None:
        """Leave no room where the log is written; then take the ballast away."""
        ballast = self.disk / "ballast"
        until = time.monotonic() + seconds
        try:
            with ballast.open("wb", buffering=0) as file:
                while time.monotonic() < until:  # what is freed meanwhile is taken too
                    try:
                        file.write(BALLAST)
                    except OSError:
                        time.sleep(0.02)
        finally:
            ballast.unlink(missing_ok=True)

    def postmaster(self) -> int | None:
        """Its process, if it is alive."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        return pid if Path(f"/proc/{pid}").exists() else None

    def kill_all(self) -> None:
        """SIGKILL the postmaster and every child at once, as a power cut would."""
        postmaster = self.postmaster()
        if postmaster is None:
            return
        try:
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            return
        pids = [postmaster, *map(int, children)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            time.sleep(0.01)

    def connect(self, **options: object) -> psycopg.Connection:
        return psycopg.connect(self.url(DATABASE), autocommit=True, connect_timeout=5, **options)  # type: ignore[arg-type]

    def destroy(self) -> None:
        if self.data.exists():
            self.stop("immediate")
            shutil.rmtree(self.data, ignore_errors=True)
        if self.disk.exists():
            subprocess.run(["umount", str(self.disk)], check=False, capture_output=True)
            shutil.rmtree(self.disk, ignore_errors=True)


def cluster(name: str = "", **changed: str) -> ChaosCluster:
    """By WINECELLAR_PG_NAME, so that two who test on one machine do not meet."""
    whose = os.environ.get("WINECELLAR_PG_NAME", "postgres")
    major = int(os.environ.get("WINECELLAR_PG_MAJOR", "18"))
    return ChaosCluster(f"chaos/{whose}{name}", major, tuple(changed.items()))
