"""The primary is lost under load, with all that was on it. A synchronous standby takes its place, nothing that was
acknowledged is lost, and the workers find it by themselves. An asynchronous one that was a second behind loses that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.chaos import checks, history
from tests.chaos.fill import KEYS, Filled
from tests.chaos.load import Publisher, Target, stop
from tests.failover.pair import Pair
from tests.processes.conftest import Processes, wait_until

pytestmark = pytest.mark.processes
RATE, BEFORE_SECONDS, BEHIND_SECONDS, AFTER_SECONDS = 1_500.0, 3.0, 1.0, 2.0


@pytest.fixture(params=["synchronous", "asynchronous"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(synchronous=request.param == "synchronous")
    yield made
    made.destroy()


def test_when_the_primary_is_lost_its_standby_goes_on_and_workers_find_it(
    pair: Pair, processes: Processes, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    pair.execute(f"INSERT INTO chaos_key SELECT 'key-' || lpad(n::text, 3, '0') FROM generate_series(1, {KEYS}) n")
    for _ in range(2):
        process = processes.start("manage.py", "run_worker", **pair.environment)
        wait_until(lambda process=process: "worker.started" in processes.log(process), what="the worker starts")
    told = history.History(tmp_path / "history.jsonl")
    target: Any = Target(pair, told, Filled({}, {}), (), RATE, feed=False)  # type: ignore[arg-type]
    publishers = [Publisher(number, target, seed=number) for number in range(2)]
    for publisher in publishers:
        publisher.start()
    wait_until(lambda: effects(pair), what="the first effects")
    time.sleep(BEFORE_SECONDS)
    is_synchronous = request.node.callspec.params["pair"] == "synchronous"
    if is_synchronous:
        pair.lose_primary()
    else:
        pair.fall_behind(BEHIND_SECONDS)
    lost_at = time.monotonic()
    pair.promote()
    promoted = time.monotonic() - lost_at
    there = effects(pair)
    wait_until(lambda: effects(pair) > there, seconds=60, what="an effect on the new primary")
    resumed = time.monotonic() - lost_at
    time.sleep(AFTER_SECONDS)
    stop(publishers)
    told.close()
    wait_until(lambda: pair.execute("SELECT count(*) FROM jobs_delivery") == [(0,)], seconds=90, what="all is done")
    story = checks.Story.of(history.read(told.path))
    facts = gathered(pair)
    lost = checks.lost_at_the_handoff(story, facts)
    with capsys.disabled():
        print(
            f"\nfailover, {request.node.callspec.params['pair']}: promoted after {promoted:.1f} s, first effect after"
            f" {resumed:.1f} s; {len(story.acknowledged):,} acknowledged, {len(lost):,} of them lost"
        )
    if is_synchronous:
        assert lost == []
    else:  # what it had not received; a test that could not see it would be no use above
        assert lost
    # Whatever there is, is whole, in order and happened once.
    for check in (checks.torn_transactions, checks.lost_in_custody, checks.double_effects, checks.inversions):
        assert check(story, facts) == [], check.__name__
    assert pair.execute("SELECT count(*) FROM jobs_deadletter") == [(0,)]


def effects(pair: Pair) -> int:
    try:
        return int(pair.execute("SELECT coalesce(max(id), 0) FROM test_effect")[0][0])
    except psycopg.Error:
        return 0


def gathered(pair: Pair) -> checks.Facts:
    log = {e: checks.Logged(*rest) for e, *rest in pair.execute("SELECT event_id, id, type, key FROM jobs_message")}
    rows = pair.execute("SELECT event_id, key, seq FROM test_effect ORDER BY id")
    ledger = {e for (e,) in pair.execute("SELECT event_id FROM processed_messages WHERE consumer_name = 'strict'")}
    return checks.Facts(
        log=log,
        types={"strict": {"chaos.counted"}},
        ledger={"strict": ledger},
        effects={"strict": [checks.Effect(*row) for row in rows]},
    )
