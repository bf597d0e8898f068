"""A lane: one thread with one database connection that claims and settles. `step` does one round; `run` only loops.

Two kinds: effects in our Postgres (all such subscriptions share these lanes) and effects outside it (one lane for
each such subscription, so that a slow provider stalls nobody else).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from jobs import queue
from jobs.apply import Application
from jobs.breaker import Gate
from jobs.database import is_away, sqlstate
from jobs.frontier import Frontier
from jobs.gauges.tally import tally
from jobs.perform import Performance
from jobs.queue import Partition
from jobs.solitude import Solitude
from jobs.subscriptions import Apply, External, Route

log = structlog.get_logger(__name__)
# After a database error: the first wait, and the longest; doubled and jittered between, so that a fleet does not
# come back in step.
RECONNECT_SECONDS = (0.1, 5.0)
# How long a lane waits for the others, to work beside them or alone, before it looks around again.
PATIENCE_SECONDS = 1.0
# So many claims in a row a lane makes of one partition while others have work too.
STAY = 4

# How soon a lane looks again at a breaker that is open, unless something under way is done before.
BREAKER_SECONDS = 0.25

NO_CONTROLS = queue.Controls()


class Pulse:
    """When a lane last began something that may take long: one exchange with the database, or one transaction.

    Written by the lane, read by the worker's main thread. A lane that waits for work has none.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    def beat(self) -> None:
        self._since = time.monotonic()

    def rest(self) -> None:
        self._since = None

    def age(self) -> float:
        since = self._since
        return 0.0 if since is None else time.monotonic() - since


class Lane(Protocol):
    claimed: int  # deliveries, since the start
    applied: int
    pulse: Pulse

    def overdue(self) -> str | None: ...
    def doing(self) -> dict[str, Any]: ...
    def step(self) -> float: ...
    def recover(self) -> None: ...
    def idle(self) -> bool: ...
    def close(self) -> None: ...


class Sweeper:
    """Asks the database which partitions have work, once per poll interval for all lanes of a frontier."""

    def __init__(self, frontier: Frontier, subscriptions: Mapping[int, Route]) -> None:
        self.frontier = frontier
        self.subscriptions = subscriptions
        self.holder = 0  # our worker's number, which it tells before any lane begins
        self._due = 0.0
        self._lock = threading.Lock()
        self._controls: dict[int, queue.Controls] = {}

    def controls(self, subscription: int) -> queue.Controls:
        """What the operator had set at the last sweep."""
        return self._controls.get(subscription, NO_CONTROLS)

    def sweep(self, *, now: bool = False, busy: bool = False) -> float:
        """Announce what is ready if a poll is due, else nothing; returns the seconds until the next is due.

        Where there is work already (`busy`) it may be late by one interval, so that what was announced is not held up.
        """
        interval = settings.WORKER_POLL_INTERVAL.total_seconds()
        with self._lock:
            left = self._due - time.monotonic()
            if left > (-interval if busy else 0.0) and not now:
                return max(left, 0.0)
            self._due = time.monotonic() + random.uniform(interval / 2, interval)  # noqa: S311
        self.frontier.look_from_the_front()
        self._controls = queue.controls()
        self.frontier.restrict(
            {subscription for subscription in self.subscriptions if not self.controls(subscription).paused},
            {s: c.concurrency for s, c in self._controls.items() if c.concurrency is not None},
        )
        self.frontier.announce(queue.ready_partitions(list(self.subscriptions), self.frontier.marks()))
        return max(self._due - time.monotonic(), 0.0)


class EffectLane:
    """Applies effects in our Postgres, one claim after another."""

    def __init__(self, sweeper: Sweeper, stopping: Callable[[], bool], solitude: Solitude) -> None:
        self.sweeper = sweeper
        self.frontier = sweeper.frontier
        self.stopping = stopping
        self.solitude = solitude
        self.claimed = self.applied = 0
        self.pulse = Pulse()
        self._last: Partition | None = None
        self._in_a_row = 0  # claims of that partition
        self._unsettled: Application | None = None

    def step(self) -> float:
        """Claim one batch and settle it; returns how long to wait for more (0: look again at once)."""
        partition = self.frontier.take(stay=self._last if self._in_a_row < STAY else None)
        if partition is None:
            return self.sweeper.sweep()
        self._in_a_row = self._in_a_row + 1 if partition == self._last else 1
        self._last = partition
        more = True
        try:
            self.sweeper.sweep(busy=True)
            with self.solitude.shared(PATIENCE_SECONDS) as may:
                more, lonely = self._work(partition, queue.IN_COMPANY) if may else (True, False)
            if lonely:
                with self.solitude.secluded(PATIENCE_SECONDS) as may:
                    more = not may or self._work(partition, queue.ALONE)[0]
        finally:
            self.frontier.release(partition, more=more)
        return 0.0

    def _work(self, partition: Partition, company: int) -> tuple[bool, bool]:
        """Whether the partition is worth another look, and whether it has something that wants us to be alone."""
        route = self.sweeper.subscriptions[partition[0]]
        controls = self.sweeper.controls(partition[0])
        claim, again = claim_from(
            self.frontier, partition, route, controls.batch or route.batch, controls, company, self.sweeper.holder
        )
        self.claimed += len(claim.messages)
        if claim.messages:
            self._unsettled = Application(route, cast(Apply, route.handler), claim, self.stopping, self.pulse.beat)
            self.applied += self._unsettled.run()
            self._unsettled = None
        return again, claim.look.lonely

    def overdue(self) -> str | None:
        """What has hung here for longer than a lease, if anything: the server did not end it, so nothing here will."""
        if self.pulse.age() < settings.VISIBILITY_TIMEOUT.total_seconds():
            return None
        application = self._unsettled
        return application.claim.messages[0].event_id if application else "no answer from the database"

    def doing(self) -> dict[str, Any]:
        """What is under way here, for whoever looks at the worker from outside."""
        application = self._unsettled
        if application is None:
            return {}
        claim = application.claim
        facts = {"subscription": application.route.name, "part": claim.partition[1], "messages": len(claim.messages)}
        return {**facts, "event_id": claim.messages[0].event_id, "seconds": round(self.pulse.age(), 1)}

    def recover(self) -> None:
        """After a lost connection: what we held and did not settle goes back, if it is still ours."""
        if self._unsettled is not None:
            self._unsettled.give_back()
            self._unsettled = None

    def idle(self) -> bool:
        return True

    def close(self) -> None:
        connection.close()


class ExternalLane:
    """Keeps up to `at_once` effects outside our Postgres under way for one subscription.

    `patient`: where less was there than there is room for, the next claim waits a moment, so that more comes together.
    """

    def __init__(
        self, sweeper: Sweeper, route: Route, stopping: Callable[[], bool], solitude: Solitude, *, patient: bool = True
    ) -> None:
        self.sweeper = sweeper
        self.frontier = sweeper.frontier
        (self.subscription,) = sweeper.subscriptions
        self.solitude = solitude
        self._company = 0  # how we are at work: beside others, alone, or not at all (0)
        self._lonely = False  # something waits that wants us to be alone
        self.pulse = Pulse()
        self.route = route
        self.stopping = stopping
        self.claimed = self.applied = 0
        handler = cast(External, route.handler)
        self.performance = Performance(route, handler, on_done=self.frontier.poke)
        self._starting: queue.Claim | None = None
        self._patient = patient
        self._next_claim = 0.0  # not before

    def step(self) -> float:
        """Settle what is done, start what there is room for; returns how long to wait for more."""
        done = self.performance.collect()
        self.applied += done
        self.performance.keep_leases()
        self._let_go()
        if self.stopping():
            return 0.0 if done else 1.0
        until_next_sweep = self.sweeper.sweep()
        controls = self.sweeper.controls(self.subscription)
        room = self.performance.room(controls.concurrency)
        if not room:
            self.performance.wait(PATIENCE_SECONDS)
            return 0.0
        gate = self.performance.gate()
        if gate is Gate.SHUT:
            self._let_go()
            self.frontier.rest(BREAKER_SECONDS)
            return BREAKER_SECONDS
        if (left := self._next_claim - time.monotonic()) > 0:
            self.frontier.rest(left)
            return 0.0
        if not self._join():
            self.performance.wait(PATIENCE_SECONDS)
            return 0.0
        partition = self.frontier.take()
        if partition is None:
            self._let_go()
            return 0.0 if done else until_next_sweep
        more = True
        try:
            if gate is Gate.PROBE:
                if not self.performance.take_probe():
                    return 0.0  # another worker makes it; the next look at the gate says so
                room = 1
            claim, more = claim_from(
                self.frontier, partition, self.route, room, controls, self._company, self.sweeper.holder
            )
            self.claimed += len(claim.messages)
            self._lonely = claim.look.lonely
            self._starting = claim
            if self._patient and 0 < len(claim.messages) < room:
                self._next_claim = time.monotonic() + settings.EXTERNAL_CLAIM_INTERVAL.total_seconds()
            self.performance.start(claim)
            self._starting = None
        finally:
            self.performance.release_probe()
            self.frontier.release(partition, more=more or self._lonely)
            self._let_go()
        self.performance.gather(settings.EXTERNAL_SETTLE_TOGETHER.total_seconds())
        return 0.0

    def _join(self) -> bool:
        """Whether we may claim: beside others, or alone if that is wanted and all that was under way is done."""
        if self._company == queue.ALONE or (self._company and (self._lonely or self.solitude.is_wanted())):
            return False
        if self._company:
            return True
        if self._lonely:
            self._company = queue.ALONE if self.solitude.seclude(PATIENCE_SECONDS) else 0
        else:
            self._company = queue.IN_COMPANY if self.solitude.share(PATIENCE_SECONDS) else 0
        return bool(self._company)

    def _let_go(self) -> None:
        if self._company and self.performance.idle():
            self._company = 0
            self.solitude.leave()

    def doing(self) -> dict[str, Any]:
        count = self.performance.under_way
        return {"subscription": self.route.name, "messages": count} if count else {}

    def recover(self) -> None:
        """What is under way goes on and is settled on the new connection; what was not begun goes back uncharged."""
        if self._starting is not None:
            unstarted = self.performance.not_under_way(self._starting)
            queue.put_back(self._starting, [queue.PutBack(message, charged=False) for message in unstarted])
            self._starting = None

    def idle(self) -> bool:
        return self.performance.idle()

    def overdue(self) -> str | None:
        """What has hung here for longer than an effect, or an exchange with the database, may take, if anything."""
        if self.pulse.age() > settings.VISIBILITY_TIMEOUT.total_seconds():
            return "no answer from the database"
        limit = self.performance.handler.time_limit or settings.EXTERNAL_TIME_LIMIT
        return self.performance.overdue(limit.total_seconds())

    def close(self) -> None:
        self.performance.close()
        connection.close()


def claim_from(
    frontier: Frontier,
    partition: Partition,
    route: Route,
    batch: int,
    controls: queue.Controls = NO_CONTROLS,
    company: int = queue.ALONE,
    holder: int = 0,
) -> tuple[queue.Claim, bool]:
    """One claim within the operator's limits, and whether the partition is worth another look at once."""
    if controls.rate_per_second is not None:
        batch = min(batch, queue.rate_allows(partition[0], controls.rate_per_second))
        if batch <= 0:
            return queue.Claim.none(partition), False  # a sweep comes soon enough
    server, blocked = frontier.server, frontier.blocked(partition)
    claim = queue.claim(
        partition,
        ordered=route.ordered,
        batch=batch,
        window=frontier.window(partition, max(batch, route.batch)),
        mark=frontier.mark(partition),
        blocked=blocked,
        company=company,
        holder=holder,
    )
    if claim.messages:
        tally.received(partition, len(claim.messages))
    if controls.rate_per_second is not None and claim.messages:
        queue.spend_rate(partition[0], len(claim.messages))
    again = frontier.learn(
        partition, claim.look, claimed=len(claim.messages), batch=batch, partial=bool(blocked), server=server
    )
    return claim, again


def run(lane: Lane, frontier: Frontier, stopped: threading.Event) -> None:
    """Step until told to stop and nothing is under way. Survives every error, the database's absence included."""
    backoff = RECONNECT_SECONDS[0]
    lost = False
    while not (stopped.is_set() and lane.idle()):
        try:
            lane.pulse.beat()
            if lost:
                frontier.begin_anew()
                lane.recover()
                lost = False
                log.info("lane.recovered")
            wait = lane.step()
            lane.pulse.rest()
            backoff = RECONNECT_SECONDS[0]
            if wait and not (stopped.is_set() and lane.idle()):
                frontier.wait(wait)
        except DatabaseError as error:
            unexpected = None if is_away(error) else error
            log.warning(
                "lane.database_error", error=type(error).__name__, sqlstate=sqlstate(error), exc_info=unexpected
            )
            lost = True
            lane.pulse.rest()
            _close_quietly()
            if stopped.is_set() and backoff >= RECONNECT_SECONDS[1]:
                break  # told to stop while the database is away: the leases run out by themselves
            stopped.wait(random.uniform(backoff / 2, backoff))  # noqa: S311
            backoff = min(2 * backoff, RECONNECT_SECONDS[1])
        except Exception:
            # A fault of ours, not of a message: say so loudly, drop the connection's state and go on.
            log.exception("lane.failed")
            lost = True
            lane.pulse.rest()
            _close_quietly()
            stopped.wait(RECONNECT_SECONDS[1] / 5)
    lane.close()


def _close_quietly() -> None:
    try:
        connection.close()
    except DatabaseError:
        connection.connection = None
