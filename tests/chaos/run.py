"""One run from an empty database to a verdict: undisturbed, in chaos, healed, and what is left then.

Django is set up with the run's own database. Guarantee: whatever was started is ended, however the run ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.chaos import checks, facts, history, plan, sales
from tests.chaos.buying import buyers, end_reservations
from tests.chaos.cluster import ChaosCluster
from tests.chaos.faults import Scene, redrive_once
from tests.chaos.fill import SCARCE, Filled, fill
from tests.chaos.load import Load, Poisoner, Target, nap, stop
from tests.chaos.nemesis import Nemesis
from tests.chaos.payment_faults import resume_all, undo_some
from tests.chaos.site import Site, send

TARGET_RATIO = 0.95
# An orphan runs again when its lease is over and a worker has looked: a poll, and a moment for two busy cores.
ORPHAN_PATIENCE = 5.0
NAP_SECONDS = 2.0
# Rows of effects, by which the rate is counted: the product's slowest projection of prices, and the chaos's own.
POSITION = (
    "SELECT coalesce((SELECT max(id) FROM chaos_effect), 0), coalesce((SELECT max(id) FROM pricing_pricehistory), 0)"
)
COUNT = """
SELECT (SELECT count(*) FROM chaos_effect WHERE id > %s) + (SELECT count(*) FROM pricing_pricehistory WHERE id > %s)
"""
WAITING = "SELECT count(*) FROM jobs_delivery"
POISON_WAITING = "SELECT count(*) FROM jobs_delivery WHERE key LIKE '%poison-%'"
WORKING = "SELECT count(*) FROM processed_messages WHERE consumer_name IN ('chaos-strict', 'price-history')"
REDRIVES_RUNNING = "SELECT count(*) FROM jobs_redrive WHERE ended_at IS NULL"
UNENDED = f"SELECT count(*) FROM purchases_purchase WHERE state NOT IN ({', '.join(map(repr, sorted(sales.ENDED)))})"


@dataclass(frozen=True)
class Options:
    """`seconds`: how long things break. `rate`, `purchases`: messages and purchases a second that are asked of the
    site."""

    seconds: float
    seed: int
    lease: float
    rate: float
    purchases: float

    @property
    def scarce(self) -> int:
        """Bottles of each kind that many want: sold out when about half the time is over."""
        return int(0.5 * self.seconds * self.purchases / SCARCE) + 1

    @property
    def calm(self) -> float:
        """How long the rate is measured, before and after."""
        return min(max(self.seconds / 10, 10.0), 60.0)

    @property
    def patience(self) -> float:
        """For work to be done once things are well: what takes its worker along needs five leases, and its turn."""
        return 20 * self.lease + 120


@dataclass
class Result:
    """What is reported; `violations` by check, `counts` of what was done and what was told."""

    options: Options
    seconds: float = 0.0
    before: float = 0.0  # effects a second
    after: float = 0.0
    orphans: list[float] = field(default_factory=list)
    violations: dict[str, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    poison: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    exit_codes: dict[str, dict[int, int]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else 0.0

    @property
    def is_right(self) -> bool:
        """Nothing was lost, doubled or out of order, and every orphan ran again."""
        return not any(self.violations.values()) and not self.broken and bool(self.orphans) and self.orphans_in_time

    @property
    def orphans_in_time(self) -> bool:
        return all(seconds <= self.options.lease + ORPHAN_PATIENCE for seconds in self.orphans)

    @property
    def is_fast_again(self) -> bool:
        return self.ratio >= TARGET_RATIO

    def as_json(self) -> str:
        facts_ = {
            "seed": self.options.seed,
            "seconds": self.options.seconds,
            "lease": self.options.lease,
            "whole_seconds": round(self.seconds, 1),
            "rate_before": round(self.before, 1),
            "rate_after": round(self.after, 1),
            "ratio": round(self.ratio, 3),
            "orphans": [round(each, 2) for each in self.orphans],
            "violations": {name: found[:20] for name, found in self.violations.items()},
            "counts": dict(self.counts),
            "poison": dict(self.poison),
            "struck": dict(self.struck),
            "exit_codes": self.exit_codes,
            "broken": self.broken,
            "is_right": self.is_right,
            "is_fast_again": self.is_fast_again,
        }
        return json.dumps(facts_, indent=1)


class Run:
    """`run` once. `folder` keeps the history and the logs."""

    def __init__(self, options: Options, server: ChaosCluster, folder: Path) -> None:
        self.options, self.server, self.folder = options, server, folder
        self.result = Result(options)
        self.history = history.History(folder / "history.jsonl")
        self._said_at = 0.0
        self._began = time.monotonic()

    def run(self, *, has_disk: bool) -> Result:
        self.say("filling the site")
        filled = fill(scarce=self.options.scarce)
        site = Site(self.server, self.folder, lease=self.options.lease, seed=self.options.seed)
        scene = Scene(site, self.history, filled, self.options.seed, has_disk=has_disk)
        try:
            self.say("starting its processes")
            site.start()
            o = self.options
            target = Target(self.server, self.history, filled, site.web_ports, o.rate, purchases=o.purchases)
            load = Load(target, o.seed)
            load.clients += buyers(target, o.seed)
            load.start()
            self._through(site, scene, load, target)
            self._settle(site, scene)
            self._judge(site, filled)
        finally:
            self.history.close()
            site.stop()
        self.result.seconds = time.monotonic() - self._began
        return self.result

    def _through(self, site: Site, scene: Scene, load: Load, target: Target) -> None:
        """Undisturbed, in chaos, healed."""
        nemesis = Nemesis(scene, plan.strikes(self.options.seed, self.options.seconds))
        poisoner = Poisoner(target, self.options.seed, plan.doses(self.options.seed, self.options.seconds))
        try:
            site.wait(lambda: site.execute(WORKING)[0][0], 60, "the first effects")
            self._wait(site, lambda: self._is_calm(site), "what came all at once at the beginning is being done")
            self.result.before = self._rate(site, "undisturbed")
            poisoner.start()
            nemesis.run(
                self.options.seconds, lambda left: self.say(f"in chaos, {left:.0f} s more, {self._told(nemesis)}")
            )
            stop([poisoner])
            self.result.struck = nemesis.counts
            self.result.broken += nemesis.broken
            self._wait(site, lambda: site.is_up() and self._is_calm(site), "healed: what piled up is being done")
            self.result.after = self._rate(site, "healed")
            self._orphans(site)
            self.say("operators undo purchases")
            undo_some(scene)
        finally:
            load.stop()
            self.result.broken += [client.broken for client in (*load.clients, poisoner) if client.broken]

    def _is_calm(self, site: Site) -> bool:
        ((waiting,),), ((poison,),) = site.execute(WAITING), site.execute(POISON_WAITING)
        return bool(waiting < 2 * self.options.rate and not poison)

    def _rate(self, site: Site, what: str) -> float:
        """Effects a second over a while."""
        (position,), began = site.execute(POSITION), time.monotonic()
        until = began + self.options.calm
        while (left := until - time.monotonic()) > 0:
            self.say(f"{what}, {left:.0f} s more")
            time.sleep(min(left, 0.5))
        ((count,),) = site.execute(COUNT, *position)
        return float(count) / (time.monotonic() - began)

    def _orphans(self, site: Site) -> None:
        """Kill who works on something, and see when another begins it again."""
        for number in range(3 if self.options.lease < 10 else 5):
            event_id = nap(self.server, NAP_SECONDS)
            site.wait(lambda e=event_id: self._naps(site, e), 30 + self.options.lease, "somebody naps")
            first = self._naps(site, event_id)[0]
            send(first["pid"], signal.SIGKILL)
            killed = time.time()
            self._wait(
                site, lambda e=event_id: len(self._naps(site, e)) > 1, f"orphan {number + 1} waits for its lease"
            )
            self.result.orphans.append(self._naps(site, event_id)[1]["at"] - killed)

    @staticmethod
    def _naps(site: Site, event_id: str) -> list[dict]:
        lines = map(json.loads, site.naps.read_text().splitlines())
        return [line for line in lines if line["event_id"] == event_id]

    def _settle(self, site: Site, scene: Scene) -> None:
        """All work is done, and what can be mended is redriven."""
        self._wait(site, lambda: not site.execute(WAITING)[0][0], "the rest is being done")
        while redrive_once(scene, "operator-last"):
            pass
        done = lambda: not site.execute(WAITING)[0][0] and not site.execute(REDRIVES_RUNNING)[0][0]  # noqa: E731
        self._wait(site, done, "what was mended is redriven")
        self._wait(site, lambda: self._all_ended(site, scene), "every purchase comes to its end")

    def _all_ended(self, site: Site, scene: Scene) -> bool:
        """And nothing more is to come that could move one: no report, no refund on its way, no command."""
        assert site.payments is not None
        end_reservations()
        resume_all(scene)
        quiet = not site.payments.waiting() and not site.execute(WAITING)[0][0]
        return quiet and not site.execute(UNENDED)[0][0]

    def _judge(self, site: Site, filled: Filled) -> None:
        self.say("reading the history")
        self.history.close()
        story = checks.Story.of(history.read(self.history.path))
        with self.server.connect() as session:
            found = facts.gather(session, self.folder / "mails.jsonl", self.folder / "money.jsonl", filled.stock)
        self.result.violations = checks.check(story, found)
        self.result.counts = self.history.counts + Counter(
            {
                "acknowledged": len(story.acknowledged),
                "messages": len(found.log),
                "deliveries applied": sum(map(len, found.ledger.values())),
                "dead letters": len(found.letters),
                "mails": len(found.mails),
                "redriven": sum(len(ids) for _, ids in story.redriven),
                **sales.in_numbers(found.sales),
            }
        )
        self.result.poison = Counter(kind for event_id, kind in story.poison.items() if event_id in found.log)
        self.result.exit_codes = {kept.name: dict(kept.ended) for kept in site.kept if kept.ended}

    def _wait(self, site: Site, condition: Callable[[], bool], what: str) -> None:
        """The work goes on by itself, or the run has failed."""

        def looked() -> bool:
            self.say(what)
            try:
                return condition()
            except psycopg.Error:
                return False

        try:
            site.wait(looked, self.options.patience, what)
        except TimeoutError as late:
            self.result.broken.append(str(late))

    def _told(self, nemesis: Nemesis) -> str:
        struck = nemesis.counts
        total = sum(struck[fault] for fault in plan.RHYTHM)
        return f"{struck['kill_worker']} workers killed, {struck['stop_postgres']} servers stopped, {total} faults"

    def say(self, what: str) -> None:
        """One line that is written over, on a terminal; elsewhere one each ten seconds."""
        now, counts = time.monotonic(), self.history.counts
        told = counts["prices ok events"] + counts["publish ok events"]
        line = f"{now - self._began:6.0f} s  {told:>8,} acknowledged  {what}"
        if sys.stdout.isatty():
            print(f"\r\033[K{line[: os.get_terminal_size().columns - 1]}", end="", flush=True)
        elif now - self._said_at > 10 or not self._said_at:
            self._said_at = now
            print(line, flush=True)
