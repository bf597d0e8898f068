"""A redrive and the queue: one effect whatever races, another generation when it fails again, rate and brake."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs import queue
from jobs.dead_letters import redrive, services
from jobs.dead_letters.models import Decision, Redrive
from jobs.dead_letters.selection import Selection
from jobs.errors import PermanentError
from jobs.models import DeadLetter, Delivery, Subscription
from jobs.worker import drain
from tests.jobs import routes
from tests.jobs.conftest import effects, rows
from tests.jobs.test_settlement import fail_on

ALL = Selection(subscription="strict")
WHO = {"by": "on-call", "note": "mended"}


@pytest.fixture
def buried(send: Any) -> list[str]:
    """Twelve messages of four keys, which failed for good."""
    ids: list[str] = send(*"abcd" * 3)
    fail_on(ids, PermanentError("broken"))
    drain(["strict"])
    routes.before_effect.clear()
    assert DeadLetter.objects.count() == 12
    return ids


def ask(selection: Selection = ALL, **given: Any) -> Redrive:
    done = services.redrive(selection=selection, kind=Decision.REDRIVE, now=timezone.now(), **{**WHO, **given})
    assert done.redrive is not None
    return done.redrive


def carry_on(run: Redrive) -> Redrive:
    for _ in range(100):
        if not redrive.step(run.pk).more:
            run.refresh_from_db()
            return run
        drain(["strict"])
        Redrive.objects.filter(pk=run.pk).update(next_at=timezone.now())
    raise AssertionError("it does not end")


def both(act: Callable[[], Any]) -> list[Any]:
    """What two threads get that do the same at once, each on its own connection."""
    results: list[Any] = []
    ready = threading.Barrier(2)

    def one() -> None:
        try:
            ready.wait(timeout=10)
            results.append(act())
        except Exception as error:
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return results


def test_a_redriven_message_takes_effect_once_in_the_order_of_its_key(buried: list[str]) -> None:
    run = carry_on(ask())
    assert (run.state, run.counts) == ("done", {"applied": 12})
    assert sorted(effects()) == sorted(buried)
    for key in "abcd":
        seen = [seq for (seq,) in rows("SELECT seq FROM test_effect WHERE key = %s ORDER BY id", key)]
        assert seen == sorted(seen)


def test_two_operators_at_once_share_the_letters_and_each_is_sent_once(buried: list[str]) -> None:
    def act() -> services.Done:
        return services.redrive(selection=ALL, kind=Decision.REDRIVE, now=timezone.now(), **WHO)

    done = both(act)
    assert sorted(len(each.ids) for each in done) == [0, 12]
    carry_on(Redrive.objects.get())
    assert sorted(effects()) == sorted(buried)


def test_two_steps_at_once_send_each_letter_once(buried: list[str]) -> None:
    run = ask()
    both(lambda: redrive.step(run.pk))
    assert Delivery.objects.filter(subscription__name="strict").count() == 10
    carry_on(run)
    assert sorted(effects()) == sorted(buried)


def test_a_redrive_that_races_a_replay_of_the_same_message_has_one_effect(buried: list[str]) -> None:
    subscription = Subscription.objects.get(name="strict")
    with connection.cursor() as cursor:  # the log again, as a replay would
        cursor.execute(
            "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " SELECT %s, abs(hashtextextended(key, 0) %% 4), id, published_at, event_id, key FROM jobs_message",
            [subscription.pk],
        )
    carry_on(ask())
    assert sorted(effects()) == sorted(buried)


def test_what_fails_again_is_a_letter_of_the_next_generation_and_stops_the_redrive(buried: list[str]) -> None:
    fail_on(buried, PermanentError("still broken"))
    run = carry_on(ask())
    assert run.state == "stopped"
    assert run.counts == {"failed_again": 10}
    assert run.stopped_because == "10 of the first 10 failed again, more than 10%; 2 were not sent"
    again = DeadLetter.objects.filter(generation=1)
    assert (again.count(), set(again.values_list("reason", flat=True))) == (10, {"still broken"})
    assert DeadLetter.objects.filter(generation=0, outcome="failed_again", waits_from=None).count() == 10
    assert DeadLetter.objects.filter(waits_from__isnull=False).count() == 12, "each message waits once"


def test_a_redrive_holds_to_its_rate(buried: list[str], settings: Any) -> None:
    settings.REDRIVE_SAMPLE = 1
    run = ask(rate_per_second=3)
    sizes = []
    for _ in range(3):
        asked = timezone.now()
        redrive.step(run.pk)
        drain(["strict"])
        sizes.append(len(effects()))
        if len(sizes) == 1:
            run.refresh_from_db()
            assert run.next_at >= asked + timedelta(seconds=1), "the next portion is due a second later"
            # However long a second is on this machine.
            Redrive.objects.filter(pk=run.pk).update(next_at=timezone.now() + timedelta(hours=1))
    assert sizes == [1, 1, 1]
    Redrive.objects.filter(pk=run.pk).update(next_at=timezone.now())
    redrive.step(run.pk)
    drain(["strict"])
    assert len(effects()) == 4


def test_a_redriven_message_has_all_its_receives_again_and_a_new_delivery(buried: list[str]) -> None:
    run = ask()
    redrive.step(run.pk)
    fresh = Delivery.objects.filter(subscription__name="strict")
    assert set(fresh.values_list("receive_count", flat=True)) == {0}
    assert min(fresh.values_list("id", flat=True)) > 12


def test_the_move_out_of_the_queue_is_one_transaction_and_the_keys_later_messages_flow_on(send: Any) -> None:
    bad, good = send("a", "a")
    fail_on([bad], PermanentError("broken"))
    drain(["strict"])
    assert effects() == [good]
    assert not Delivery.objects.filter(subscription__name="strict").exists()
    letter = DeadLetter.objects.get()
    assert (letter.event_id, letter.failures[0]["worker"] != "") == (bad, True)
    assert letter.traceback.count("Traceback (most recent call last)") == 1, "not those of the batches it spoiled"


def test_a_letter_whose_subscription_is_gone_is_not_sent_and_says_so(buried: list[str], monkeypatch: Any) -> None:
    monkeypatch.setattr("jobs.dead_letters.preflight.load_routes", dict)
    run = carry_on(ask(stop_share=1))
    assert run.counts == {"refused": 12}
    assert set(DeadLetter.objects.values_list("note", flat=True)) == {
        "no code handles the subscription strict any more"
    }
    assert queue.depths()


def test_a_discard_or_a_quarantine_can_be_taken_back_and_a_redrive_cannot(buried: list[str]) -> None:
    now = timezone.now()
    ids = sorted(DeadLetter.objects.values_list("pk", flat=True))
    services.discard(selection=Selection(ids=tuple(ids[:3])), now=now, **WHO)
    ask(Selection(ids=tuple(ids[3:5])))
    done = services.reopen(selection=ALL, now=now, **WHO)
    assert (done.ids, done.left_out) == (ids[:3], 9)
    assert DeadLetter.objects.filter(waits_from__isnull=False).count() == 10
