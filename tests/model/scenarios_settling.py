"""One scenario per promise of settling a claim: the fence, the one transaction, failures, burials, redrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from django.conf import settings
from django.db import connection, transaction

from jobs import failures, lanes, queue
from jobs.apply import Application
from jobs.frontier import Frontier
from jobs.messages import Message
from jobs.models import DeadLetter
from jobs.retry import Bury, Retry
from jobs.solitude import Solitude
from jobs.subscriptions import Apply, load_routes
from tests.jobs import routes
from tests.jobs.conftest import effects, make_visible, rows
from tests.model import redriving
from tests.model.stage import (
    claim,
    claim_with_mark,
    database_time,
    delivery,
    dies_at,
    empty,
    failing,
    move_mark_past,
    permanent,
    promise,
    reset,
    send,
    settle,
    take_over,
    transient,
)


def the_table() -> list[tuple[object, ...]]:
    return rows("SELECT * FROM jobs_delivery ORDER BY id")


def _by_a_sleeper(write: Callable[[queue.Claim], object], what: str) -> None:
    """A worker sleeps past its lease, another has taken over; then the first wakes up and writes."""
    send("a")
    sleeper, heir = take_over("loose")
    promise(len(heir.messages) == 1, "the scenario itself: another has it now")
    before = the_table()
    write(sleeper)
    promise(the_table() == before, f"I6: {what} succeeds without the lease")


def a_sleepers_ack_touches_nothing() -> None:
    def write(sleeper: queue.Claim) -> None:
        with transaction.atomic():
            queue.ack(sleeper, "loose", sleeper.messages)

    _by_a_sleeper(write, "an ack")


def a_sleepers_telling_ack_touches_nothing() -> None:
    def write(sleeper: queue.Claim) -> None:
        with transaction.atomic():
            queue.ack_told(sleeper, "loose", sleeper.messages)

    _by_a_sleeper(write, "an ack that tells what is new")


def a_sleepers_ack_of_some_touches_nothing() -> None:
    def write(sleeper: queue.Claim) -> None:
        with transaction.atomic():
            queue.ack_some(sleeper, "loose", sleeper.messages)

    _by_a_sleeper(write, "an ack of some")


def a_sleepers_put_back_touches_nothing() -> None:
    _by_a_sleeper(lambda sleeper: queue.put_back(sleeper, [queue.PutBack(sleeper.messages[0])]), "a put back")


def a_sleepers_renewal_touches_nothing() -> None:
    _by_a_sleeper(lambda sleeper: queue.renew([(sleeper, sleeper.messages[0])]), "a renewal")


def a_sleepers_burial_touches_nothing() -> None:
    burial = queue.Burial("permanent", "Error", "reason", "", 1)
    _by_a_sleeper(lambda sleeper: queue.bury(sleeper, "loose", sleeper.messages[0], burial), "a burial")


def a_sleepers_give_back_touches_nothing() -> None:
    _by_a_sleeper(queue.give_back_claim, "a give back")


def a_lane_that_lost_its_connection_gives_back_only_what_is_its_own() -> None:
    """river#1302: a rescuer overwrote what had changed hands since it looked."""

    def write(sleeper: queue.Claim) -> None:
        lane = lanes.EffectLane(lanes.Sweeper(Frontier(), {}), lambda: False, Solitude())
        lane._unsettled = Application(load_routes()["loose"], routes.record_effects, sleeper, lambda: False)
        lane.recover()

    _by_a_sleeper(write, "a rescue")


def a_burial_that_finds_its_row_lost_lets_no_later_message_of_its_key_go() -> None:
    """A worker pauses between a failed attempt's rollback and its burial; another takes over; then it wakes up."""
    first, second = send("a", "a", type_="thing.happened")
    sleeper, heirs = claim("strict"), []

    def old_code(messages: Sequence[Message]) -> None:
        if messages[0].event_id == first:
            raise permanent()
        routes.record_effects(messages)

    def pause(*arguments: object, **named: object) -> Retry | Bury:
        make_visible()
        heirs.append(claim("strict"))
        return decide(*arguments, **named)

    decide, failures.decide = failures.decide, pause
    try:
        settle("strict", sleeper, old_code)
    finally:
        failures.decide = decide
    promise(second not in effects(), "I5: a key's later message is applied while another worker has the one before")
    settle("strict", heirs[0])
    empty("strict")
    promise(effects() == [first, second], "I5: a key's messages are applied out of order, or one is lost")


def of_a_batch_partly_lost_nothing_is_applied() -> None:
    first, _ = send("a", "a", type_="thing.happened")
    sleeper, heir = take_over("strict")
    promise([m.event_id for m in heir.messages] == [first], "the scenario itself: the suspect comes alone")
    settle("strict", sleeper)
    promise(effects() == [], "I5: the rest of a batch is applied before its key's first message")


def after_a_failure_its_keys_later_messages_go_back() -> None:
    first, second, other = send("a", "a", "b", type_="thing.happened")
    settle("strict", claim("strict"), failing(first, transient()))
    promise(effects() == [other], "I5: a key's later message is applied before the one that failed")
    promise(delivery(second, "strict") == (0, None, True), "I7: what was not started is not charged")


def _work(handler: Apply) -> None:
    settle("loose", claim("loose"), handler)


def a_worker_may_die_at_any_statement() -> None:
    """Claim, ack, effect, commit, burial: killed before and after each. Then others do what is left."""
    for when in ("before", "after"):
        number = 0
        died = True
        while died:
            number += 1
            reset()
            good, bad, last = send("a", "b", "a")
            handler = failing(bad, permanent())
            died = dies_at(number, when, partial(_work, handler))
            empty("loose", handler)
            where = f"after a death {when} statement {number}"
            done, letters = effects(), list(DeadLetter.objects.values_list("event_id", flat=True))
            promise(len(done) == len(set(done)), f"I3: an effect happens twice, {where}")
            promise(set(done) == {good, last}, f"I1: an effect is lost, {where}")
            promise(letters == [bad], f"I1: a message is lost or in two places, {where}")
        promise(number > 8, "the scenario itself: it has many statements")


def an_event_delivered_twice_takes_effect_once() -> None:
    (event,) = send("a")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " SELECT subscription_id, part, message_id, published_at, event_id, key FROM jobs_delivery"
        )
    settle("loose", claim("loose", batch=1))
    promise(effects() == [event], "I1: an effect is lost")
    settle("loose", claim("loose", batch=1))
    promise(effects() == [event], "I3: an effect happens twice")


def each_subscription_applies_an_event_once() -> None:
    (event,) = send("a", type_="thing.happened")
    settle("strict", claim("strict"))
    promise(effects() == [event], "the scenario itself: the first subscription applies it")
    settle("second", claim("second"))
    promise(effects() == [event, event], "I1: the second subscription never gets it")


def a_wait_set_late_in_a_long_transaction_is_a_whole_one() -> None:
    send("a")
    held = claim("loose")
    with transaction.atomic():
        rows("SELECT pg_sleep(0.05)")
        began = database_time()
        queue.put_back(held, [queue.PutBack(held.messages[0], delay=5.0)])
        ((waits,),) = rows("SELECT extract(epoch FROM visible_at - %s) FROM jobs_delivery", began)
    promise(waits >= 5, "I7: a retry comes sooner than the other side asked for")


# --- Redrive --------------------------------------------------------------------------------------------------------


def _bury_one(*, receives: int = 1) -> tuple[str, int]:
    """An event that became a dead letter at receive `receives`; its id and the letter's."""
    (event,) = send("a")
    for receive in range(1, receives + 1):
        make_visible()
        error = permanent() if receive == receives else transient()
        settle("loose", claim("loose"), failing(event, error))
    letter = DeadLetter.objects.get(event_id=event)
    promise(letter.receive_count == receives, "the scenario itself: it is buried at that receive")
    return event, letter.pk


def _redrive(letter: int) -> None:
    with transaction.atomic():
        redriving.redrive(letter)


def a_redrive_of_what_was_applied_changes_nothing() -> None:
    event, letter = _bury_one()
    for _ in range(2):
        _redrive(letter)
        empty("loose")
        promise(event in effects(), "I1: an effect is lost")
    promise(effects() == [event], "I3: a second redrive repeats the effect")
    promise(not the_table(), "I1: the redriven delivery stays")


def a_redriven_message_has_all_its_receives_again() -> None:
    event, letter = _bury_one(receives=settings.MAX_RECEIVES)
    _redrive(letter)
    promise(delivery(event) == (0, None, True), "I7: it starts with the old receive count")
    empty("loose")
    promise(effects() == [event], "I7: it is buried again without having run")


def a_redriven_message_is_seen_by_every_worker() -> None:
    frontier = Frontier()
    event, letter = _bury_one()
    ((old,),) = rows("SELECT last_value FROM jobs_delivery_id")
    promise(move_mark_past(frontier, "loose", old), "I8: the mark stays behind")
    _redrive(letter)
    held = claim_with_mark(frontier, "loose")
    promise([m.event_id for m in held.messages] == [event], "I1: a worker whose mark has passed it never sees it")
