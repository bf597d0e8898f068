"""The processes that the demo starts, each in a session of its own, each with a log of its own.

Guarantee: whatever is started here is ended by `stop`, and by the leash should the demo die first. The order of ending
is the reverse of the order of starting. Called by orchestra.py, from the main thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from winecellar import embedded
from winecellar.demo import leash

TAIL_LINES = 12


class ChildDiedError(Exception):
    """A process that should run has ended; the message names it, its log and the log's last lines."""


@dataclass(frozen=True)
class Child:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])


class Children:
    """All of them; their logs are in `folder`, and the leash keeps its `lock` for as long as it has work."""

    def __init__(self, folder: Path, lock: TextIO) -> None:
        self.folder = folder
        self._children: list[Child] = []
        self._holds_postgres = False
        self._leash = self._spawn(
            [sys.executable, "-m", "winecellar.demo.leash"], "leash", stdin=subprocess.PIPE, keeps=[lock.fileno()]
        )

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Child:
        child = self._spawn([sys.executable, *command], name, environment=environment)
        self._children.append(child)
        self._tell_leash(f"hold {child.process.pid}")
        return child

    def start_postgres(self) -> bool:
        """Start the embedded server if it is ours to start; whether it was. Ends with the others."""
        if os.environ.get("DATABASE_URL"):
            return False
        if not embedded.default().running():
            self._holds_postgres = True
            self._tell_leash(f"hold {leash.POSTGRES}")
        return embedded.start_unless_external()

    def check(self) -> None:
        """Raise ChildDiedError if one of them has ended by itself."""
        for child in self._children:
            if child.process.poll() is not None:
                raise ChildDiedError(
                    f"The {child.name} stopped by itself (exit code {child.process.returncode}). "
                    f"The end of {child.log}:\n{child.tail()}"
                )

    def stop(self, patience: Callable[[], bool]) -> None:
        """End all of them; `patience` False means at once. Nothing of ours is left when this returns."""
        while self._children:
            child = self._children[-1]
            end_child(child, patience)
            self._children.pop()
            self._tell_leash(f"let-go {child.process.pid}")
        if self._holds_postgres:
            embedded.default().stop()
            self._tell_leash(f"let-go {leash.POSTGRES}")
        if self._leash.process.stdin:
            self._leash.process.stdin.close()
        self._leash.process.wait()

    def _spawn(
        self,
        command: Sequence[str],
        name: str,
        *,
        environment: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        keeps: Sequence[int] = (),
    ) -> Child:
        log = self.folder / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603
                command,
                cwd=embedded.ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=keeps,
                start_new_session=True,  # Ctrl-C in the terminal is ours to pass on
            )
        return Child(name, process, log)

    def _tell_leash(self, line: str) -> None:
        if self._leash.process.stdin:
            try:
                self._leash.process.stdin.write(f"{line}\n".encode())
                self._leash.process.stdin.flush()
            except BrokenPipeError:
                pass  # somebody ended the leash; we still end what we started


def end_child(child: Child, patience: Callable[[], bool]) -> None:
    """End one process and whatever it started itself."""
    leash.end_groups([child.process.pid], alive=lambda _: child.process.poll() is None, patience=patience)
    child.process.wait()
