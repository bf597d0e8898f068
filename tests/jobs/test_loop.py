"""The loop of scheduler and watchman: it stops when told, survives a step that fails, and ends when one hangs."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from django.db import OperationalError

from jobs import loop

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stop() -> Iterator[loop.StopSignal]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield loop.StopSignal()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_it_steps_until_told_to_stop_whatever_a_step_raises(
    stop: loop.StopSignal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "RECONNECT_SECONDS", (0.0, 0.0))
    troubles = iter([OperationalError("away"), KeyError("a bug"), None])
    recovered = []

    def step() -> float:
        trouble = next(troubles)
        if trouble:
            raise trouble
        os.kill(os.getpid(), signal.SIGTERM)
        return 3_600.0  # which it does not wait

    loop.run(step, stop, on_error=lambda: recovered.append(1))
    assert len(recovered) == 2
    assert next(troubles, "over") == "over"


def test_a_step_that_hangs_ends_the_process() -> None:
    script = """
        import time
        from datetime import timedelta
        import django
        django.setup()
        from django.conf import settings
        settings.WORKER_WATCHDOG = timedelta(seconds=0.3)
        from jobs import loop
        loop.run(lambda: time.sleep(600) or 0.0, loop.StopSignal())
    """
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "winecellar.settings"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, env=environment, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGALRM


def test_a_first_signal_asks_and_a_second_one_does_what_it_did_before(request: pytest.FixtureRequest) -> None:
    class Work:
        stopping = False

    work = Work()
    # Who is started in the background of a shell ignores it from the start.
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), loop.stopped_by_signal(work):
        os.kill(os.getpid(), signal.SIGINT)
        assert work.stopping
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
