"""The real worker process: it wakes, stops, is killed, is paused, and loses its database."""

import os
import signal
import socket
from typing import Any

import pytest
from django.db import connection

from jobs.models import DeadLetter
from jobs.worker import HUNG
from tests.jobs.conftest import effects, rows
from tests.processes.conftest import Processes, children, is_running, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]
DEADLY = {"exit", "segfault", "loop"}
UNDER_TEST = {"DJANGO_SETTINGS_MODULE": "tests.jobs.process_settings"}


def left(name: str = "strict") -> int:
    sql = "SELECT count(*) FROM jobs_delivery d JOIN jobs_subscription s ON s.id = d.subscription_id WHERE s.name = %s"
    return int(rows(sql, name)[0][0])


def test_an_idle_worker_handles_what_is_published_and_stops_with_zero_when_told(
    send: Any, processes: Processes
) -> None:
    worker = processes.worker("strict", **UNDER_TEST)
    ids = send(*"aabbc")
    wait_until(lambda: len(effects()) == 5, what="five effects")
    assert sorted(effects()) == sorted(ids)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=15) == 0
    assert "worker.stopped" in processes.log(worker)


def test_without_listen_polling_finds_the_work(send: Any, processes: Processes) -> None:
    processes.worker("strict", WORKER_LISTEN="false", **UNDER_TEST)
    send("a")
    wait_until(lambda: len(effects()) == 1, what="an effect by polling")


def test_an_unknown_subscription_is_refused_in_words(queue_db: None, processes: Processes) -> None:
    process = processes.start("manage.py", "run_worker", "nonsense", **UNDER_TEST)
    assert process.wait(timeout=20) != 0
    assert "No such subscription: nonsense. There are: strict, second, loose, outside." in processes.log(process)


@pytest.mark.parametrize("fault", ["exit", "segfault", "loop", "recursion", "memory", "sys.exit"])
def test_a_message_that_kills_its_worker_is_buried_after_five_receives_and_its_mates_are_not(
    send: Any, processes: Processes, fault: str
) -> None:
    """The supervisor restarts the worker as often as it dies; no mate of the killer may be lost or buried."""
    before = send("a", "b", "c")
    (killer,) = send("d", fault=fault)
    after = send("a", "b", "c")
    worker = processes.worker("strict", QUEUE_FAULTS="1", **UNDER_TEST)
    wait_until(
        lambda: DeadLetter.objects.exists() and not left(), seconds=90, what="the killer is buried, the rest done"
    )
    letter = DeadLetter.objects.get()
    assert (letter.event_id, letter.receive_count, letter.cause) == (killer, 5, "worker_crash")
    assert sorted(effects()) == sorted(before + after)
    deaths = processes.log(worker).count("worker.died")
    assert deaths == (5 if fault in DEADLY else 0), "five deaths, or five failures that Python could still catch"
    if fault in DEADLY:
        held = [failure["worker"] for failure in letter.failures if failure["error_class"] == "LeaseExpired"]
        assert len(set(held)) == 5, "each attempt names the worker that fell silent, and they were five"
        assert all(name.startswith(f"{socket.gethostname()}:") for name in held)


@pytest.mark.parametrize(
    ("mates", "killers"),
    [("thing.happened", "thing.happened"), ("do_outside", "do_outside"), ("do_outside", "thing.happened")],
)
def test_what_another_lane_had_in_hand_when_a_message_killed_the_worker_is_charged_twice_at_most(
    send: Any, processes: Processes, mates: str, killers: str
) -> None:
    """Each death finds the mate at work. After the second the killer is given to a lane alone in the process."""
    first, second = key_of_part(0), key_of_part(1)  # so that two lanes hold them
    (mate,) = send(first, type_=mates, fault="nap")
    (killer,) = send(second, type_=killers, fault="segfault")
    processes.worker("strict", "outside", QUEUE_FAULTS="1", **UNDER_TEST)
    wait_until(lambda: DeadLetter.objects.exists() and effects(), seconds=90, what="one is buried, the other done")
    assert list(DeadLetter.objects.values_list("event_id", "receive_count", "cause")) == [(killer, 5, "worker_crash")]
    ((event_id, receives),) = rows("SELECT event_id, receive_count FROM test_effect")
    assert (event_id, receives <= 3) == (mate, True), f"the mate was handed out {receives} times"


def key_of_part(part: int) -> str:
    """A key whose messages lie in this of two partitions, and so too of four."""
    sql = "SELECT min(i)::text FROM generate_series(1, 99) i WHERE abs(hashtextextended(i::text, 0) % 4) = %s"
    return str(rows(sql.replace("% 4", "%% 4"), part)[0][0])


def test_a_killed_workers_deliveries_are_done_by_another_within_their_lease(send: Any, processes: Processes) -> None:
    victim = processes.worker("strict", "--unsupervised", QUEUE_FAULTS="1", **UNDER_TEST)
    (event_id,) = send("a", fault="sleep")
    wait_until(lambda: rows("SELECT 1 FROM jobs_delivery WHERE lease_token IS NOT NULL"), what="it is in flight")
    victim.kill()
    victim.wait()
    processes.worker("strict", **UNDER_TEST)
    wait_until(lambda: effects() == [event_id], seconds=20, what="another worker applies it")


def test_a_worker_paused_past_its_lease_wakes_up_to_nothing(send: Any, processes: Processes) -> None:
    sleeper = processes.worker("strict", "--unsupervised", QUEUE_FAULTS="1", **UNDER_TEST)
    (event_id,) = send("a", fault="sleep")
    wait_until(lambda: rows("SELECT 1 FROM jobs_delivery WHERE lease_token IS NOT NULL"), what="it is in flight")
    sleeper.send_signal(signal.SIGSTOP)
    # Its transaction holds the row; the server ends it at the handler's time limit, then the lease ends.
    processes.worker("strict", **UNDER_TEST)
    wait_until(lambda: effects() == [event_id], seconds=30, what="another worker applies it")
    sleeper.send_signal(signal.SIGCONT)
    # It finds its session ended, or that its handler is long past its deadline; either way it applies nothing.
    wait_until(
        lambda: sleeper.poll() == HUNG or "lane.recovered" in processes.log(sleeper),
        seconds=60,
        what="the sleeper notices",
    )
    (later,) = send("a")
    wait_until(lambda: not left(), what="work goes on")
    assert effects() == [event_id, later]


def test_a_worker_that_shows_no_sign_of_life_is_replaced_by_its_supervisor(send: Any, processes: Processes) -> None:
    supervisor = processes.worker("strict", **UNDER_TEST)
    (child,) = children(supervisor)
    os.kill(child, signal.SIGSTOP)
    wait_until(lambda: "worker.silent" in processes.log(supervisor), what="the silence is noticed")
    (event_id,) = send("a")
    wait_until(lambda: effects() == [event_id], what="its successor works")
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(timeout=15) == 0


def test_a_worker_whose_supervisor_was_killed_ends_by_itself(send: Any, processes: Processes) -> None:
    supervisor = processes.worker("strict", **UNDER_TEST)
    (child,) = children(supervisor)
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: not is_running(child), what="the orphan ends")


def test_workers_whose_connections_are_terminated_go_on_by_themselves(send: Any, processes: Processes) -> None:
    processes.worker("strict", **UNDER_TEST)
    for _ in range(3):
        ids = send(*"abc")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
            )
        wait_until(lambda ids=ids: set(ids) <= set(effects()), what="effects after the cut")
    assert len(effects()) == len(set(effects())) == 9


def test_a_listener_that_was_cut_off_subscribes_again(send: Any, processes: Processes) -> None:
    listening = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ~ '^LISTEN'"
    # The server may take a moment to notice that the worker of the test before is gone.
    wait_until(lambda: not rows(listening), what="nobody listens yet")
    processes.worker("strict", **UNDER_TEST)
    (first,) = wait_until(lambda: rows(listening), what="it listens")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", first)
    (second,) = wait_until(lambda: [pid for pid in rows(listening) if pid != first], what="it listens again")
    assert second != first


def test_workers_whose_clocks_are_an_hour_apart_steal_nothing(send: Any, processes: Processes) -> None:
    """Leases and retries are the database's time: whoever is early or late by its own clock changes nothing."""
    for offset in ("3600", "-3600"):
        process = processes.start(
            "-m",
            "tests.processes.shifted",
            offset,
            "run_worker",
            "strict",
            "--unsupervised",
            QUEUE_FAULTS="1",
            **UNDER_TEST,
        )
        wait_until(lambda process=process: "worker.started" in processes.log(process), what="it starts")
    ids = send(*"abcdefgh" * 4, fault="slow")
    wait_until(lambda: not left(), what="all is done")
    assert sorted(effects()) == sorted(ids)
    assert {count for (count,) in rows("SELECT receive_count FROM test_effect")} == {1}, "nothing was handed out twice"


def test_told_to_stop_in_the_middle_a_worker_finishes_or_gives_back_uncharged(send: Any, processes: Processes) -> None:
    worker = processes.worker("strict", QUEUE_FAULTS="1", **UNDER_TEST)
    send(*["a"] * 200, fault="slow")
    wait_until(lambda: 20 <= len(effects()) < 180, what="it is in the middle")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=20) == 0
    assert effects(), "what was begun is done"
    leased = rows(
        "SELECT count(*), coalesce(max(receive_count), 0) FROM jobs_delivery d JOIN jobs_subscription s"
        " ON s.id = d.subscription_id WHERE s.name = 'strict' AND (lease_token IS NOT NULL OR receive_count > 0)"
    )
    assert leased == [(0, 0)]
    processes.worker("strict", **UNDER_TEST)
    wait_until(lambda: not left(), what="the rest is done")
    assert len(effects()) == len(set(effects())) == 200
