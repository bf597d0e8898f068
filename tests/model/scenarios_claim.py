"""One scenario per promise of a claim: each plays a short story on the real queue and says which promise was broken."""

from __future__ import annotations

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.test import override_settings

from jobs import queue
from jobs.frontier import Frontier
from jobs.models import DeadLetter
from tests.jobs.conftest import effects, make_visible, rows
from tests.model.stage import (
    Open,
    a_claim_stalled_after_its_snapshot,
    claim,
    claim_with_mark,
    database_time,
    delivery,
    elsewhere,
    empty,
    failing,
    move_mark_past,
    promise,
    send,
    settle,
    transient,
)

PLANNER = ["hashjoin", "mergejoin", "hashagg", "material", "sort", "indexscan", "bitmapscan"]


def a_stalled_claim_takes_nothing_that_was_claimed_meanwhile() -> None:
    send("a", "b")
    with a_claim_stalled_after_its_snapshot("loose") as go_on:
        mine = claim("loose")
        theirs = go_on()
    taken = {m.id for m in mine.messages}
    promise(len(taken) == 2, "the scenario itself: the first claim takes both")
    promise(not taken & {m.id for m in theirs.messages}, "I6: a live lease is taken")


def a_stalled_claim_leaves_the_later_messages_of_a_key_it_cannot_have() -> None:
    send("a", "a", type_="thing.happened")
    with a_claim_stalled_after_its_snapshot("strict") as go_on:
        first = claim("strict", batch=1)
        theirs = go_on()
    promise(len(first.messages) == 1, "the scenario itself: the first of the key is in flight")
    promise(not theirs.messages, "I5: the key's second message is handed out while its first is in flight")


def a_stalled_claim_takes_a_key_from_its_first_message_on() -> None:
    """Meanwhile the key's first message was taken and given back: it is there, but its row is another version."""
    first, _ = send("a", "a", type_="thing.happened")
    with a_claim_stalled_after_its_snapshot("strict") as go_on:
        promise(queue.give_back_claim(claim("strict", batch=1)) == 1, "the scenario itself: it is taken and given back")
        theirs = go_on()
    taken = [m.event_id for m in theirs.messages]
    promise(taken[:1] in ([], [first]), "I5: the key's second message is handed out without its first")


def a_claim_does_not_wait_for_anothers_handler() -> None:
    send("a")
    held = claim("loose")
    make_visible()
    with elsewhere() as other:
        working = Open(other, lambda: queue.ack(held, "loose", held.messages))
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '250ms'")
                taken = claim("loose").messages
        except OperationalError as error:
            raise AssertionError("I8: a claim waits for another worker's handler") from error
        finally:
            working.end()
    promise(not taken, "I6: what a handler works on is handed out")


def a_claim_takes_no_more_than_its_batch_whatever_the_planner_does() -> None:
    for off in [[], *[PLANNER[:n] for n in range(1, len(PLANNER) + 1)]]:
        send(*"abcdefghij" * 3)
        with connection.cursor() as cursor:
            for switch in off:
                cursor.execute(f"SET enable_{switch} = off")
        try:
            # A prepared one keeps the plan it got; here each is planned as the switches stand, but for the first.
            with override_settings(PREPARED_STATEMENTS=not off):
                held = claim("loose", batch=4)
        finally:
            with connection.cursor() as cursor:
                for switch in off:
                    cursor.execute(f"RESET enable_{switch}")
        promise(len(held.messages) <= 4, f"I6: a claim takes more than its batch, without {', '.join(off)}")


def five_silent_workers_use_up_a_message() -> None:
    (event,) = send("a")
    for _ in range(settings.MAX_RECEIVES):
        make_visible()
        promise(len(claim("loose").messages) == 1, "the scenario itself: it is handed out five times")
    make_visible()
    settle("loose", claim("loose"))
    promise(effects() == [], "I7: it runs at its sixth receive")
    promise(
        list(DeadLetter.objects.values_list("event_id", "cause", "receive_count")) == [(event, "worker_crash", 5)],
        "I7: after five receives it is a dead letter",
    )


def what_a_silent_worker_held_comes_back_one_by_one() -> None:
    send("a", "b", "c")
    claim("loose")
    make_visible()
    promise(len(claim("loose").messages) == 1, "I7: a killer's batch-mates are charged for it: suspects come together")


def who_fell_silent_twice_waits_for_a_lane_that_is_alone() -> None:
    (event,) = send("a")
    for _ in range(2):
        promise(len(claim("loose", company=queue.IN_COMPANY).messages) == 1, "the scenario itself: handed out twice")
        make_visible()
    held = claim("loose", company=queue.IN_COMPANY)
    promise(not held.messages, "I7: what another lane has in hand is charged for a killer time after time")
    promise(held.look.lonely, "I8: nobody learns that something waits for a lane to be alone")
    promise([m.event_id for m in claim("loose").messages] == [event], "I8: it never goes")


def a_key_in_backoff_waits_as_a_whole() -> None:
    first, second = send("a", "a", type_="thing.happened")
    settle("strict", claim("strict"), failing(first, transient()))
    promise(not claim("strict").messages, "I5: a key's later message overtakes the one in backoff")
    promise(delivery(second, "strict") == (0, None, True), "I7: what was not started is not charged")


def a_key_in_flight_waits_as_a_whole() -> None:
    send("a", type_="thing.happened")
    promise(len(claim("strict").messages) == 1, "the scenario itself: the first is in flight")
    send("a", type_="thing.happened")
    promise(not claim("strict").messages, "I5: a key's later message overtakes the one in flight")


def a_worker_whose_clock_is_wrong_takes_no_live_lease() -> None:
    send("a")
    claim("loose")
    promise(not claim("loose").messages, "I6: a live lease is taken, by a clock that is ahead")


def a_lease_taken_late_in_a_long_transaction_is_a_whole_one() -> None:
    send("a")
    with transaction.atomic():
        rows("SELECT pg_sleep(0.05)")
        began = database_time()
        claim("loose")
        ((until,),) = rows("SELECT visible_at FROM jobs_delivery")
    promise(until >= began + settings.VISIBILITY_TIMEOUT, "I6: a lease is shorter than promised")


def a_renewal_late_in_a_long_transaction_is_a_whole_one() -> None:
    send("a")
    held = claim("loose")
    with transaction.atomic():
        rows("SELECT pg_sleep(0.05)")
        began = database_time()
        queue.renew([(held, held.messages[0])])
        ((until,),) = rows("SELECT visible_at FROM jobs_delivery")
    promise(until >= began + settings.VISIBILITY_TIMEOUT, "I6: a renewed lease is shorter than promised")


def a_claim_covers_what_an_ack_between_its_ends_may_not_touch() -> None:
    """The ack finds its rows by id range and token: another claim's delivery between them must have another token."""
    first, middle = send("a", "b")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_delivery SET visible_at = clock_timestamp() + interval '1 hour' WHERE event_id = %s", [first]
        )
    promise([m.event_id for m in claim("loose").messages] == [middle], "the scenario itself: the middle is leased")
    (last,) = send("c")
    make_visible()
    held = claim("loose")
    promise([m.event_id for m in held.messages] == [first, last], "the scenario itself: its neighbours are claimed")
    settle("loose", held)
    empty("loose")
    promise(sorted(effects()) == sorted([first, middle, last]), "I1: a delivery between two others is acked unseen")


def a_late_commit_keeps_its_keys_order() -> None:
    """A publisher draws a low id and commits late; meanwhile others are handled and the worker's mark moves up."""
    frontier = Frontier()
    with elsewhere() as other:
        late = Open(other, lambda: send("k", type_="thing.happened"))
        for _ in range(3):
            send("other", type_="thing.happened")
            settle("strict", claim_with_mark(frontier, "strict"))
        late.end()
    send("k", type_="thing.happened")
    for _ in range(4):
        settle("strict", claim_with_mark(frontier, "strict"))
    seen = [event for event, key in rows("SELECT event_id, key FROM test_effect ORDER BY id") if key == "k"]
    published = [event for event, key in rows("SELECT event_id, key FROM jobs_message ORDER BY id") if key == "k"]
    promise(seen == published, "I5: a late commit is overtaken, or never seen")


def the_mark_moves_on_all_the_same() -> None:
    """What the gate is for: without long transactions the mark follows the oldest delivery."""
    frontier = Frontier()
    ((newest,),) = rows("SELECT last_value FROM jobs_delivery_id")
    promise(move_mark_past(frontier, "loose", newest), "I8: the mark stays behind, and claims walk over the dead")
