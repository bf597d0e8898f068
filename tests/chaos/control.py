"""The run that must fail: where commits are answered before they are on disk, a power cut loses what was acknowledged,
and the checker has to say so. Beside it the same with commits as shipped, which loses nothing. `--control`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import checks, history
from tests.chaos.cluster import DATABASE, ChaosCluster, cluster
from tests.chaos.fill import KEYS, Filled
from tests.chaos.load import Publisher, Target, stop
from winecellar.embedded import ROOT

RATE, SECONDS = 4_000.0, 1.5
# Whoever does not wait for the disk does so for longer than a moment: the server's own writer comes seldom.
SELDOM = {"wal_writer_delay": "'10s'", "wal_writer_flush_after": "'64MB'"}
KEY_TABLE = "CREATE TABLE chaos_key (key text PRIMARY KEY, seq bigint NOT NULL DEFAULT 0)"


@dataclass(frozen=True)
class Cut:
    """What a power cut did: how many messages had been acknowledged, and what the checker found."""

    acknowledged: int
    lost: list[str]
    torn: list[str]


def power_cut(server: ChaosCluster, folder: Path, *, synchronous_commit: str) -> Cut:
    """Publish, kill the server with all its processes in the middle of it, start it again, and look."""
    with server.connect() as session:
        session.execute(f"ALTER DATABASE {DATABASE} SET synchronous_commit = {synchronous_commit}")
    told = history.History(folder / f"{synchronous_commit}.jsonl")
    target = Target(server, told, Filled({}, {}), (), RATE, feed=False)
    publishers = [Publisher(number, target, seed=number) for number in range(2)]
    for publisher in publishers:
        publisher.start()
    time.sleep(SECONDS)
    server.kill_all()
    stop(publishers)
    told.close()
    server.start()
    story = checks.Story.of(history.read(told.path))
    with server.connect() as session:
        rows = session.execute("SELECT event_id, id, type, key FROM jobs_message").fetchall()
    facts = checks.Facts(log={event_id: checks.Logged(*rest) for event_id, *rest in rows})
    return Cut(
        len(story.acknowledged), checks.lost_at_the_handoff(story, facts), checks.torn_transactions(story, facts)
    )


def power_cuts() -> dict[str, Cut]:
    """By the setting of synchronous_commit."""
    server = cluster("-control", **SELDOM)
    server.create()
    try:
        environment = {**os.environ, "DATABASE_URL": server.url(DATABASE), "LOG_LEVEL": "WARNING"}
        command = [sys.executable, "manage.py", "migrate", "jobs", "-v", "0"]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        with server.connect() as session:
            session.execute(KEY_TABLE)
            session.execute(
                f"INSERT INTO chaos_key SELECT 'key-' || lpad(n::text, 3, '0') FROM generate_series(1, {KEYS}) n"
            )
        with tempfile.TemporaryDirectory() as folder:
            return {how: power_cut(server, Path(folder), synchronous_commit=how) for how in ("on", "off")}
    finally:
        server.destroy()


def main() -> int:
    cuts = power_cuts()
    for how, cut in cuts.items():
        print(f"synchronous_commit = {how}: {cut.acknowledged:,} acknowledged, {len(cut.lost):,} of them lost")
    well = not cuts["on"].lost and bool(cuts["off"].lost)
    print("The checker finds the loss where there is one." if well else "The checker is of no use.")
    return 0 if well else 1
