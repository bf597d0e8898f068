"""The nine scenarios of the chaos and pressure tables of hardbyte/postgresql-job-queue-benchmarking, in their units.

Two worker processes and a steady offered load. Chaos: the rate of completion in the recovery phase, as a part of the
baseline's. Pressure: the rate under stress, as a part of the clean phase's. Their phases take a minute to an hour;
`--seconds` is what a phase takes here. What is lost is counted too. `python -m tests.chaos --scenarios`.
"""

from __future__ import annotations

import argparse
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import checks, facts, history, report
from tests.chaos.cluster import ChaosCluster
from tests.chaos.faults import Scene, end_backends, stop_postgres, take_all_slots
from tests.chaos.fill import Filled, fill
from tests.chaos.load import Load, Target
from tests.chaos.plan import Strike
from tests.chaos.site import Kept, Site, descendants, send

HIGH_LOAD = 1.5  # times the offered load, as there
READERS, KILL_EVERY, BACKENDS_A_SECOND = 4, 1 / 6, 2.0
POSITION, COUNT = "SELECT coalesce(max(id), 0) FROM chaos_effect", "SELECT count(*) FROM chaos_effect WHERE id > %s"


@dataclass(frozen=True)
class Stage:
    site: Site
    scene: Scene
    target: Target
    seconds: float
    seed: int


Stress = Callable[[Stage], None]


def postgres_restart(stage: Stage) -> None:
    stop_postgres(stage.scene, _strike("fast"))
    time.sleep(stage.seconds)


def pg_backend_kill(stage: Stage) -> None:
    source = random.Random(stage.seed)
    for _ in range(int(stage.seconds * BACKENDS_A_SECOND)):
        end_backends(stage.scene, _strike(choice=source.random()))
        time.sleep(1 / BACKENDS_A_SECOND)


def pool_exhaustion(stage: Stage) -> None:
    take_all_slots(stage.scene, _strike(seconds=stage.seconds))


def crash_recovery(stage: Stage) -> None:
    """The first worker is killed, stays away for the phase, and is started again."""
    with _away(stage.site, stage.site.workers()[0]):
        time.sleep(stage.seconds)


def repeated_kills(stage: Stage) -> None:
    for _ in range(int(1 / KILL_EVERY)):
        _kill(stage.site.workers()[0])
        time.sleep(stage.seconds * KILL_EVERY)


def idle_in_tx(stage: Stage) -> None:
    """A transaction with an id of its own stays open and does nothing."""
    with stage.site.server.connect() as session:
        session.execute("BEGIN; SELECT pg_current_xact_id()")
        time.sleep(stage.seconds)


def sustained_high_load(stage: Stage) -> None:
    more = Load(Target(**{**vars(stage.target), "rate": stage.target.rate * (HIGH_LOAD - 1)}), stage.seed + 1)
    more.start()
    time.sleep(stage.seconds)
    more.stop()


def active_readers(stage: Stage) -> None:
    """Others read the hot tables again and again, under snapshots that they keep."""
    until = time.monotonic() + stage.seconds
    readers = [threading.Thread(target=_read, args=(stage.site.server, until)) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def event_burst(stage: Stage) -> None:
    """The high load, for longer."""
    for _ in range(2):
        sustained_high_load(stage)


CHAOS: tuple[Stress, ...] = (postgres_restart, pg_backend_kill, pool_exhaustion, crash_recovery, repeated_kills)
PRESSURE: tuple[Stress, ...] = (idle_in_tx, sustained_high_load, active_readers, event_burst)


@dataclass(frozen=True)
class Measured:
    """Completions a second; `ratio` as the table has it."""

    name: str
    clean: float
    stress: float
    recovery: float
    is_chaos: bool

    @property
    def ratio(self) -> float:
        return (self.recovery if self.is_chaos else self.stress) / self.clean


def main(server: ChaosCluster, folder: Path, chosen: argparse.Namespace) -> int:
    """All nine on one site, one after the other; whether nothing was lost."""
    told = history.History(folder / "history.jsonl")
    filled = fill()
    site = Site(server, folder, lease=float(chosen.lease or 30.0), workers=2, whole=False)
    target = Target(server, told, Filled({}, {}), (), chosen.rate, feed=False)
    stage = Stage(site, Scene(site, told, Filled({}, {}), chosen.seed), target, chosen.seconds, chosen.seed)
    found: list[Measured] = []
    load = Load(target, chosen.seed)
    try:
        site.start()
        load.start()
        try:
            site.wait(lambda: site.execute(POSITION)[0][0], 60, "the first effects")
            for stress in (*CHAOS, *PRESSURE):
                one = measure(stage, stress)
                found.append(one)
                rates = f"clean {one.clean:6.0f}/s  stress {one.stress:6.0f}/s  recovery {one.recovery:6.0f}/s"
                print(f"{one.name:<20} {rates}  {one.ratio:4.0%}", flush=True)
        finally:
            load.stop()
        site.wait(lambda: not site.execute("SELECT count(*) FROM jobs_delivery")[0][0], 300, "all is done")
    finally:
        told.close()
        site.stop()
    with server.connect() as session:
        there = facts.gather(session, folder / "mails.jsonl", folder / "money.jsonl", filled.stock)
    violations = checks.check(checks.Story.of(history.read(told.path)), there)
    wrong = [f"{name}: {some[0]}" for name, some in violations.items() if some]
    print("\n".join(wrong) or f"Nothing of {len(there.log):,} messages was lost, doubled or out of order.")
    if chosen.report:
        report.put("scenarios", table(found, chosen, len(there.log), wrong))
    return 1 if wrong else 0


def measure(stage: Stage, stress: Stress) -> Measured:
    """Clean, stress, recovery."""
    clean = _rate(stage, lambda _: time.sleep(stage.seconds))
    stressed = _rate(stage, stress)
    recovery = _rate(stage, lambda _: time.sleep(stage.seconds))
    # The next one begins with what is usual.
    stage.site.wait(
        lambda: stage.site.execute("SELECT count(*) FROM jobs_delivery")[0][0] < stage.target.rate, 120, "it is calm"
    )
    return Measured(stress.__name__, clean, stressed, recovery, stress in CHAOS)


def table(found: list[Measured], chosen: argparse.Namespace, messages: int, wrong: list[str]) -> str:
    head = (
        f"`python -m tests.chaos --scenarios --seconds {chosen.seconds:g} --rate {chosen.rate:g} --report`:"
        f" {chosen.rate:g} messages a second offered, {chosen.seconds:g} s a phase, {report.describe_machine()};"
        f" {messages:,} messages, {'; '.join(wrong) or 'none lost, doubled or out of order'}."
    )
    lines = [head, "", "| scenario | clean, jobs/s | stress, jobs/s | recovery, jobs/s | ratio |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for one in found:
        of = "recovery / baseline" if one.is_chaos else "stress / clean"
        lines.append(
            f"| {one.name} | {one.clean:,.0f} | {one.stress:,.0f} | {one.recovery:,.0f} | {of} {one.ratio:.0%} |"
        )
    return "\n".join(lines)


def _rate(stage: Stage, during: Stress) -> float:
    ((position,),), began = stage.site.execute(POSITION), time.monotonic()
    during(stage)
    stage.site.wait(stage.site.database_answers, 60, "Postgres answers")
    ((count,),) = stage.site.execute(COUNT, position)
    return float(count) / (time.monotonic() - began)  # type: ignore[arg-type]


def _strike(mode: str = "", *, choice: float = 0.5, seconds: float = 0.0) -> Strike:
    return Strike(0.0, "", choice, seconds, mode)


@contextmanager
def _away(site: Site, kept: Kept) -> Iterator[None]:
    kept.held = True
    try:
        _kill(kept)
        yield
    finally:
        kept.held = False


def _kill(kept: Kept) -> None:
    if kept.pid:
        for pid in reversed(descendants(kept.pid)):  # the supervisor first: it would start another
            send(pid, signal.SIGKILL)


def _read(server: ChaosCluster, until: float) -> None:
    with ExitStack() as stack:
        session = stack.enter_context(server.connect())
        while time.monotonic() < until:
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            for table_ in ("jobs_delivery", "jobs_message"):
                session.execute(f"SELECT count(*), max(key) FROM {table_}")
            session.execute("COMMIT")
