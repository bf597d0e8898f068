"""Waking idle workers: after commit, coalesced, lossy."""

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import psycopg
import pytest
from django.db import transaction

from jobs import wakeup
from jobs.messages import NewMessage
from jobs.outbox import publish
from tests.processes.conftest import ROOT, database_url


@pytest.fixture
def ears(queue_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """A session that listens; announcing is on, through an announcer of this test's own."""
    settings.WORKER_LISTEN = True
    sessions: list[psycopg.Connection] = []
    connect = wakeup._connect

    def remember() -> psycopg.Connection:
        sessions.append(connect())
        return sessions[-1]

    monkeypatch.setattr(wakeup, "_connect", remember)
    monkeypatch.setattr(wakeup, "_announcer", wakeup._Announcer())
    session = remember()
    session.execute(f"LISTEN {wakeup.CHANNEL}")
    yield session
    settings.WORKER_LISTEN = False
    for opened in sessions:
        opened.close()


def heard(session: psycopg.Connection, *, seconds: float) -> list[str]:
    select.select([session.fileno()], [], [], seconds)
    return [notice.payload for notice in session.notifies(timeout=0)]


def test_a_commit_is_announced_with_the_partitions_it_wrote(ears: psycopg.Connection) -> None:
    with transaction.atomic():
        publish([NewMessage("thing.happened", "a", {"seq": 1})])
    (payload,) = heard(ears, seconds=10)
    assert len(wakeup._parse(payload)) == 2, "one partition of each of its two subscriptions"


def test_a_process_that_publishes_and_ends_has_it_said(ears: psycopg.Connection) -> None:
    program = (
        "import django; django.setup()\n"
        "from django.db import transaction\n"
        "from jobs.messages import NewMessage\n"
        "from jobs.outbox import publish\n"
        "with transaction.atomic():\n"
        "    publish([NewMessage('thing.happened', 'a', {'seq': 1})])\n"
    )
    environment = {
        "DATABASE_URL": database_url(),
        "WORKER_LISTEN": "true",
        "DJANGO_SETTINGS_MODULE": "winecellar.settings",
    }
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, cwd=ROOT, check=True, timeout=60)
    assert heard(ears, seconds=10), "and not only by luck: its last thread ends with it"


def test_what_was_rolled_back_is_not_announced(ears: psycopg.Connection) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        publish([NewMessage("thing.happened", "a", {"seq": 1})])
        raise RuntimeError
    with transaction.atomic():
        publish([NewMessage("do_loosely", "a", {"seq": 2})])
    announced = [wakeup._parse(payload) for payload in heard(ears, seconds=10)]
    assert [len(partitions) for partitions in announced] == [1], "only the second transaction"


def test_what_comes_while_the_announcer_waits_is_said_in_one_breath(
    ears: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr("jobs.wakeup.time.sleep", lambda seconds: held.wait(10))
    wakeup.announce([(1, 0)])
    assert heard(ears, seconds=10) == ["1:0"]
    for part in range(50):
        wakeup.announce([(2, part)])
    held.set()
    payloads = heard(ears, seconds=10)
    assert len(payloads) == 1
    assert wakeup._parse(payloads[0]) == {(2, part) for part in range(50)}


def test_in_a_stream_each_pause_is_twice_the_last_and_where_commits_are_seldom_it_is_short_again(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "WORKER_LISTEN", True)
    pauses: list[float] = []
    clock = [0.0]
    gaps = iter([0.006] * 5 + [0.020] * 2)  # from each NOTIFY to the next commit

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if gap := next(gaps, None):
            clock[0] += gap
            wakeup.announce([(1, 0)])

    monkeypatch.setattr(wakeup, "time", SimpleNamespace(sleep=pause, monotonic=lambda: clock[0]))
    monkeypatch.setattr(wakeup, "_connect", MagicMock())
    monkeypatch.setattr(wakeup, "_announcer", wakeup._Announcer())
    wakeup.announce([(1, 0)])
    until(lambda: len(pauses) == 8)
    assert pauses == [0.005, 0.01, 0.02, 0.04, 0.04, 0.04, 0.005, 0.005]


def until(happened: Callable[[], object], seconds: float = 10) -> None:
    deadline = monotonic() + seconds
    while not happened():
        assert monotonic() < deadline, "it did not come to pass"


def test_a_payload_fits_what_the_server_takes_and_nonsense_is_ignored() -> None:
    partitions = {(subscription, part) for subscription in range(20) for part in range(200)}
    payloads = list(wakeup._payloads(partitions))
    assert max(map(len, payloads)) < 8_000
    assert set().union(*map(wakeup._parse, payloads)) == partitions
    assert wakeup._parse("") == set()
