"""Starting and ending processes: nothing that was started is left, whoever dies first."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from winecellar.demo import ports
from winecellar.demo.children import ChildDiedError, Children
from winecellar.demo.folder import alone_in
from winecellar.demo.stop import StopWish
from winecellar.demo.waiting import ToldToStopError, Waiting

SECONDS = 20
SLEEP = ["-c", "import time; time.sleep(600)"]
# Deaf to SIGTERM, and with a child of its own: in its group, as a web server has, or in a session, as a supervisor has.
STUBBORN = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session={session});"
    "print(child.pid, flush=True); time.sleep(600)"
)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return not (status.exists() and "\nState:\tZ" in status.read_text())


def until(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.02)


@pytest.fixture
def children(tmp_path):
    with alone_in(tmp_path) as lock:
        started = Children(tmp_path, lock)
        yield started
        started.stop(patience=lambda: False)


def test_stop_ends_everything_the_leash_included(children):
    pids = [children.start(name, SLEEP).process.pid for name in ("one", "two")]
    pids.append(children._leash.process.pid)
    assert all(alive(pid) for pid in pids)
    children.stop(patience=lambda: True)
    assert not any(alive(pid) for pid in pids)


@pytest.mark.parametrize("session", [False, True])
def test_a_process_deaf_to_sigterm_is_killed_with_its_own_children_when_patience_ends(children, session):
    child = children.start("stubborn", ["-c", STUBBORN.format(session=session)])
    until(lambda: child.log.read_text().endswith("\n"))
    grandchild = int(child.log.read_text())
    children.stop(patience=lambda: False)
    until(lambda: not alive(child.process.pid) and not alive(grandchild))


def test_a_child_that_ends_by_itself_is_reported_with_the_end_of_its_log(children):
    child = children.start("web server", ["-c", "print('no such setting'); raise SystemExit(3)"])
    child.process.wait(SECONDS)
    with pytest.raises(ChildDiedError, match="web server stopped by itself") as caught:
        children.check()
    assert "exit code 3" in str(caught.value)
    assert "no such setting" in str(caught.value)


def test_a_child_is_in_a_session_of_its_own_and_hears_no_ctrl_c_of_ours(children):
    child = children.start("one", SLEEP)
    assert os.getsid(child.process.pid) == child.process.pid != os.getsid(0)


@pytest.mark.processes
def test_when_the_demo_is_killed_the_leash_ends_what_it_had_started(tmp_path):
    script = f"""
        import sys, time
        from pathlib import Path
        from winecellar.demo.children import Children
        from winecellar.demo.folder import alone_in
        folder = Path({str(tmp_path)!r})
        lock = alone_in(folder)
        children = Children(folder, lock.__enter__())
        child = children.start("one", ["-c", "import time; time.sleep(600)"])
        print(child.process.pid, children._leash.process.pid, flush=True)
        time.sleep(600)
    """
    demo = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    child, leash = map(int, demo.stdout.readline().split())
    assert alive(child)
    assert alive(leash)
    demo.kill()
    demo.wait()
    until(lambda: not alive(child) and not alive(leash))


def test_a_folder_is_one_demos_until_its_leash_has_ended_too(tmp_path):
    with alone_in(tmp_path) as lock:
        children = Children(tmp_path, lock)
        with alone_in(tmp_path) as second:
            assert second is None
    with alone_in(tmp_path) as while_the_leash_is_there:
        assert while_the_leash_is_there is None
    children.stop(patience=lambda: True)
    with alone_in(tmp_path) as afterwards:
        assert afterwards is not None


def test_a_signal_wakes_whoever_waits_and_a_second_one_is_urgent(monkeypatch):
    stop = StopWish()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        stop.install()
        assert not stop.wait(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(SECONDS)
        assert (stop.requested, stop.urgent) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        until(lambda: stop.urgent)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_waiting_ends_by_the_condition_the_deadline_or_the_wish_to_stop(children):
    stop = StopWish()
    waiting = Waiting(stop, children)
    answers = iter([False, False, True])
    assert waiting.until(lambda: next(answers), seconds=SECONDS, between=0.001)
    assert not waiting.until(lambda: False, seconds=0.0, between=0.001)
    stop._on_signal(signal.SIGINT, None)
    with pytest.raises(ToldToStopError):
        waiting.until(lambda: False, seconds=SECONDS)


def test_a_taken_port_is_known_and_another_one_is_found():
    with socket.socket() as taken:
        taken.bind((ports.HOST, 0))
        taken.listen(1)
        number = taken.getsockname()[1]
        assert not ports.is_free(number)
        other = ports.next_free(number)
        assert other is None or (other > number and ports.is_free(other))
    assert ports.is_free(number)
