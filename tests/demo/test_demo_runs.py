"""The demo itself: the real command, the real processes, a cluster of its own."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from winecellar.demo import ports
from winecellar.embedded import ROOT, Cluster

SECONDS = 150


@pytest.fixture
def cluster():
    """The name of a cluster that nobody has used; it is removed afterwards, files and all."""
    yield from _named_and_removed("fresh")


@pytest.fixture(scope="module")
def used_cluster():
    """The name of a cluster that the tests here share, one after the other, as one person's demos do."""
    yield from _named_and_removed("used")


def _named_and_removed(kind):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "only")
    name = f"demo-test-{kind}-{worker}-{os.getpid()}"
    yield name
    server = Cluster(name)
    server.stop("immediate")
    shutil.rmtree(server.data, ignore_errors=True)
    shutil.rmtree(ROOT / "var" / "demo" / name, ignore_errors=True)
    (ROOT / "var" / f".{server.data.name}.lock").unlink(missing_ok=True)


def start(cluster, *arguments, **more):
    environment = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "EMAIL_URL"}}
    return subprocess.Popen(
        [sys.executable, "-m", "winecellar.demo", *arguments],
        cwd=ROOT,
        env={**environment, "WINECELLAR_PG_NAME": cluster, "WORKER_LISTEN": "true", **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_port():
    with socket.socket() as probe:
        probe.bind((ports.HOST, 0))
        return probe.getsockname()[1]


def left(cluster):
    """Every process that was started for this cluster and still runs, whoever its parent is now."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"WINECELLAR_PG_NAME={cluster}".encode() in environ.read_bytes().split(b"\0"):
                found.append((environ.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended while we looked
    return found


def assert_nothing_is_left(cluster):
    assert left(cluster) == []
    assert not (Cluster(cluster).data / "postmaster.pid").exists()


def test_a_taken_port_gets_a_plain_message_that_says_what_to_type(cluster):
    with socket.socket() as taken:
        taken.bind((ports.HOST, 0))
        taken.listen(1)
        number = taken.getsockname()[1]
        demo = start(cluster, "--port", str(number))
        said, _ = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 2
    assert re.fullmatch(rf"Port {number} is taken by another program. Choose another one: make demo PORT=\S+\n", said)
    assert_nothing_is_left(cluster)


@pytest.mark.parametrize("wrong", [["--port", "0"], ["--port", "70000"], ["--seconds", "-3"], ["--rate", "0"]])
def test_a_senseless_figure_is_refused_before_anything_is_started(cluster, wrong):
    demo = start(cluster, *wrong)
    said, _ = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 2
    assert "must be" in said
    assert not Cluster(cluster).data.exists()


def test_it_refuses_to_run_in_production_and_touches_nothing(cluster):
    needed = {"SECRET_KEY": "x", "ALLOWED_HOSTS": "x", "SITE_URL": "https://x.example", "EMAIL_URL": "smtp://x.example"}
    demo = start(cluster, WINECELLAR_ENV="production", **needed)
    said, _ = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 2
    assert "WINECELLAR_ENV=production" in said
    assert not Cluster(cluster).data.exists()


@pytest.mark.processes
def test_a_bounded_demo_ends_well_and_leaves_no_process(cluster):
    demo = start(cluster, "--seconds", "8", "--port", str(free_port()), "--seed", "7", "--rate", "8")
    said, _ = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 0, said
    sent, accepted, events, acked, emails, duplicates = (
        int(re.search(rf"^  {name} +([0-9,]+)", said, re.MULTILINE)[1].replace(",", ""))
        for name in ("prices sent", "accepted", "events", "deliveries acked", "emails", "duplicates")
    )
    assert sent == accepted >= events > 50
    assert acked == 4 * events + emails
    assert emails >= 1
    assert duplicates >= 1
    assert re.search(r"202 to mail +p50 [0-9,]+ ms, p99 [0-9,]+ ms", said)
    assert f"Every alert that was due arrived ({emails} of {emails})." in said
    assert re.search(r"price  Ch\. Montrose 2016 · Quenby & Ostler · \$", said)
    assert "demo@winecellar.example, password " in said
    assert_nothing_is_left(cluster)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("number", "after", "code"),
    [
        (signal.SIGINT, "winecellar demo", 130),
        (signal.SIGTERM, "Postgres", 130),
        (signal.SIGINT, "Mail sink", 130),
        (signal.SIGINT, "MAIL", 0),
    ],
    ids=["at once", "after Postgres", "among the processes", "while prices flow"],
)
def test_a_signal_at_any_moment_leaves_no_process(used_cluster, number, after, code):
    demo = start(used_cluster, "--port", str(free_port()))
    for line in demo.stdout:
        if after in line:
            break
    demo.send_signal(number)
    said, _ = demo.communicate(timeout=SECONDS)
    assert demo.returncode == code, said
    assert "Traceback" not in said
    assert_nothing_is_left(used_cluster)


@pytest.mark.processes
def test_a_second_demo_is_told_that_one_runs_and_after_kill_9_the_next_one_works(used_cluster):
    first = start(used_cluster, "--port", str(free_port()))
    for line in first.stdout:
        if "MAIL" in line:
            break
    second = start(used_cluster, "--port", str(free_port()))
    said, _ = second.communicate(timeout=SECONDS)
    assert second.returncode == 2
    assert "running here already" in said
    first.kill()
    first.wait()
    deadline = time.monotonic() + SECONDS
    while left(used_cluster):
        assert time.monotonic() < deadline, left(used_cluster)
        time.sleep(0.1)
    third = start(used_cluster, "--port", str(free_port()), "--seconds", "3")
    said, _ = third.communicate(timeout=SECONDS)
    assert third.returncode == 0, said
    assert_nothing_is_left(used_cluster)
