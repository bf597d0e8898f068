"""The worker process: lanes, the listener, signals. `manage.py run_worker` runs one; any number may run.

SIGTERM and SIGINT stop claiming, let what has begun finish within settings.WORKER_GRACE, and exit 0. A signal handler
only writes a byte to a pipe. The main thread reads it, shows signs of life, and ends the process when a lane hangs.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import structlog
from django.conf import settings

from jobs import lanes
from jobs.frontier import Frontier
from jobs.gauges.reporter import KIND, Reporter
from jobs.lanes import EffectLane, ExternalLane, Lane, Sweeper
from jobs.loop import process_name
from jobs.queue import Partition
from jobs.schedule import store as processes
from jobs.solitude import Solitude
from jobs.subscriptions import External, Route, load_routes
from jobs.supervisor import Heartbeat
from jobs.sync import ensure_subscriptions
from jobs.wakeup import Listener

log = structlog.get_logger(__name__)
REPORT_SECONDS = 30
BEAT_SECONDS = 1.0
HUNG, LANE_LOST = 70, 71  # exit codes: a handler passed its deadline, a lane ended by itself


class Group:
    """Lanes that share a frontier: all subscriptions with effects in Postgres, or one with effects outside it."""

    def __init__(
        self,
        subscriptions: dict[int, Route],
        lane_count: int,
        stopping: Callable[[], bool],
        solitude: Solitude,
        *,
        patient: bool,
    ) -> None:
        self.frontier = Frontier()
        self.sweeper = Sweeper(self.frontier, subscriptions)
        self.subscriptions = subscriptions
        (first, *_) = subscriptions.values()
        self.lanes: list[EffectLane | ExternalLane] = (
            [ExternalLane(self.sweeper, first, stopping, solitude, patient=patient)]
            if isinstance(first.handler, External)
            else [EffectLane(self.sweeper, stopping, solitude) for _ in range(lane_count)]
        )

    def announce(self, partitions: Iterable[Partition]) -> None:
        self.frontier.announce(p for p in partitions if p[0] in self.subscriptions)


def groups(
    names: Iterable[str] | None, lane_count: int, stopping: Callable[[], bool], *, patient: bool = True
) -> list[Group]:
    """The lane groups for these subscriptions (all of them by default). Raises KeyError for an unknown name."""
    routes = load_routes()
    ids = ensure_subscriptions()
    chosen = [routes[name] for name in (names or routes)]
    effects = {ids[r.name]: r for r in chosen if not isinstance(r.handler, External)}
    externals = [{ids[r.name]: r} for r in chosen if isinstance(r.handler, External)]
    solitude = Solitude()
    return [
        Group(subscriptions, lane_count, stopping, solitude, patient=patient)
        for subscriptions in [effects, *externals]
        if subscriptions
    ]


class Worker:
    """One process's worth of lanes. `run` returns the exit code: 0 after an orderly stop, 1 if the grace ran out."""

    def __init__(self, names: Iterable[str] | None = None, heartbeat: Heartbeat | None = None) -> None:
        self._stopped = threading.Event()
        self._groups = groups(names, settings.WORKER_LANES, self._stopped.is_set)
        self._heartbeat = heartbeat or Heartbeat(None)
        self._progress = (0, time.monotonic())  # how many were applied when it was last asked, and since when
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        number = processes.sign_on(KIND, process_name())
        for group in self._groups:
            group.sweeper.holder = number
        listener = Listener(self._announce) if settings.WORKER_LISTEN else None
        if listener:
            listener.start()
        reporter = Reporter(self._doing, number)
        reporter.start()
        threads = [
            threading.Thread(
                target=lanes.run, args=(lane, group.frontier, self._stopped), name=f"lane-{i}", daemon=True
            )
            for group in self._groups
            for i, lane in enumerate(group.lanes)
        ]
        for thread in threads:
            thread.start()
        log.info("worker.started", subscriptions=sorted(r.name for g in self._groups for r in g.subscriptions.values()))
        self._work(threads)
        log.info("worker.stopping", grace_seconds=settings.WORKER_GRACE.total_seconds())
        self._stopped.set()
        for group in self._groups:
            group.frontier.poke()
        deadline = time.monotonic() + settings.WORKER_GRACE.total_seconds()
        while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
            self._heartbeat.beat()
            next(thread for thread in threads if thread.is_alive()).join(min(BEAT_SECONDS, deadline - time.monotonic()))
        if listener:
            listener.close()
        reporter.close()
        hung = [thread.name for thread in threads if thread.is_alive()]
        log.info("worker.stopped", applied=self._applied(), hung=hung)
        return 1 if hung else 0

    def _work(self, threads: list[threading.Thread]) -> None:
        """Until told to stop, or until the supervisor is gone. Ends the process if a lane hangs or is lost."""
        reported, report_at = 0, time.monotonic() + REPORT_SECONDS
        while not select.select([self._wake_reader], [], [], BEAT_SECONDS)[0]:
            if not self._heartbeat.beat():
                log.error("worker.orphaned")
                return
            for group in self._groups:
                for lane in group.lanes:
                    if overdue := lane.overdue():
                        log.error("handler.hung", event_id=overdue)
                        os._exit(HUNG)
            if not all(thread.is_alive() for thread in threads):
                log.error("lane.lost")
                os._exit(LANE_LOST)
            if time.monotonic() > report_at:
                report_at += REPORT_SECONDS
                if self._applied() != reported:
                    reported = self._applied()
                    log.info("worker.progress", applied=reported)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        os.write(self._wake_writer, b".")

    def _announce(self, partitions: set[Partition]) -> None:
        for group in self._groups:
            group.announce(partitions)

    def _doing(self) -> dict[str, Any]:
        """For whoever looks from outside: what is under way, how much was done, how long ago something last was."""
        applied = self._applied()
        if applied != self._progress[0]:
            self._progress = (applied, time.monotonic())
        batches = [doing for group in self._groups for lane in group.lanes if (doing := lane.doing())]
        return {"batches": batches, "applied": applied, "quiet_seconds": round(time.monotonic() - self._progress[1], 1)}

    def _applied(self) -> int:
        return sum(lane.applied for group in self._groups for lane in group.lanes)


def drain(names: Iterable[str] | None = None, *, seconds: float = 60.0) -> int:
    """Work in the calling thread until nothing is available or under way; returns how many were settled.

    For tests and for `run_worker --until-empty`. Raises TimeoutError after `seconds`. Deliveries in backoff are
    not waited for.
    """
    deadline = time.monotonic() + seconds
    all_groups = groups(names, 1, lambda: False, patient=False)  # all that there is waits already
    running: list[tuple[Group, Lane]] = [(group, group.lanes[0]) for group in all_groups]
    while True:
        for group in all_groups:
            group.sweeper.sweep(now=True)
        claimed = [_step_until_quiet(group, lane, deadline) for group, lane in running]
        if not any(claimed):
            break
    for group in all_groups:
        if isinstance(group.lanes[0], ExternalLane):
            group.lanes[0].performance.close()
    return sum(lane.applied for group in all_groups for lane in group.lanes)


def _step_until_quiet(group: Group, lane: Lane, deadline: float) -> bool:
    """Step until there is nothing to claim and nothing under way; whether anything was claimed."""
    before = lane.claimed
    while True:
        if time.monotonic() > deadline:
            raise TimeoutError("the queue did not empty in time")
        wait = lane.step()
        if wait and lane.idle():
            return lane.claimed > before
        if wait:
            group.frontier.wait(min(wait, 0.1))
