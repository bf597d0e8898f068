"""From claim to settlement: effects once, failures bounded, order kept, fences held."""

import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from jobs import queue
from jobs.apply import Application
from jobs.errors import NotInTransactionError, PermanentError, TransientError
from jobs.messages import Message, NewMessage
from jobs.models import DeadLetter, Delivery, ProcessedMessage, Subscription
from jobs.outbox import publish
from jobs.schedule import store as processes
from jobs.subscriptions import load_routes
from jobs.worker import drain
from tests.jobs import routes
from tests.jobs.conftest import effects, make_visible, rows


def claim_all(name: str) -> list[queue.Claim]:
    subscription = Subscription.objects.get(name=name)
    claims = [
        queue.claim((subscription.pk, part), ordered=subscription.ordered, batch=100, window=1000)
        for part in range(subscription.partitions)
    ]
    return [claim for claim in claims if claim.messages]


def settle(name: str, claim: queue.Claim) -> int:
    route = load_routes()[name]
    assert callable(route.handler)
    return Application(route, route.handler, claim, lambda: False).run()


def fail_on(event_ids: Sequence[str], error: Exception) -> None:
    def hook(messages: Sequence[Message]) -> None:
        if any(m.event_id in event_ids for m in messages):
            raise error

    routes.before_effect.append(hook)


def test_publishing_outside_a_transaction_is_refused(queue_db: None) -> None:
    with pytest.raises(NotInTransactionError):
        publish([NewMessage("thing.happened", "a", {})])
    assert not rows("SELECT 1 FROM jobs_message")


def test_a_rolled_back_change_takes_its_message_and_deliveries_with_it(queue_db: None) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        publish([NewMessage("thing.happened", "a", {})])
        raise RuntimeError
    assert not rows("SELECT 1 FROM jobs_message UNION ALL SELECT 1 FROM jobs_delivery")


def test_one_event_reaches_each_of_its_subscriptions_once(send: Any) -> None:
    (event_id,) = send("a")
    drain()
    assert effects() == [event_id, event_id]
    assert set(ProcessedMessage.objects.values_list("consumer_name", "event_id")) == {
        ("strict", event_id),
        ("second", event_id),
    }
    assert not Delivery.objects.exists()


def test_a_type_nobody_subscribes_to_is_kept_in_the_log(send: Any) -> None:
    send("a", type_="thing.ignored")
    assert rows("SELECT type FROM jobs_message") == [("thing.ignored",)]
    assert not Delivery.objects.exists()


def test_decimals_keep_their_digits_through_the_log(queue_db: None) -> None:
    with transaction.atomic():
        publish([NewMessage("thing.happened", "a", {"price": Decimal("189.00")})])
    (claim, *_) = claim_all("strict")
    assert str(claim.messages[0].body["price"]) == "189.00"


def test_keys_of_one_subscription_are_handled_in_publication_order(send: Any) -> None:
    send(*["a", "b", "c"] * 20)
    drain(["strict"])
    seen = rows("SELECT key, seq FROM test_effect ORDER BY id")
    for key in "abc":
        assert [seq for k, seq in seen if k == key] == sorted(seq for k, seq in seen if k == key)
    assert len(seen) == 60


def test_a_delivery_already_in_the_ledger_is_acked_and_changes_nothing(send: Any) -> None:
    (event_id,) = send("a")
    ProcessedMessage.objects.create(consumer_name="strict", event_id=event_id, processed_at="2026-01-01T00:00:00Z")
    drain(["strict"])
    assert effects() == []
    assert not Delivery.objects.filter(subscription__name="strict").exists()


def test_the_same_event_twice_in_one_batch_takes_effect_once(send: Any) -> None:
    (event_id,) = send("a", type_="do_loosely")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " SELECT subscription_id, part, message_id, published_at, event_id, key FROM jobs_delivery"
        )
    drain(["loose"])
    assert effects() == [event_id]
    assert not Delivery.objects.exists()


def test_a_permanent_failure_is_dead_lettered_at_its_first_receive_and_its_mates_are_applied(send: Any) -> None:
    ids = send(*["a"] * 9)
    fail_on([ids[4]], PermanentError("new_price_usd required"))
    drain(["strict"])
    assert effects() == ids[:4] + ids[5:]
    letter = DeadLetter.objects.get()
    assert (letter.event_id, letter.receive_count, letter.cause) == (ids[4], 1, "permanent")
    assert letter.reason == "new_price_usd required"
    assert letter.error_class == "PermanentError"
    assert "PermanentError" in letter.traceback
    assert letter.failures[0]["receive"] == 1
    assert not ProcessedMessage.objects.filter(event_id=ids[4]).exists()


def test_a_transient_failure_goes_back_and_only_its_own_key_waits(send: Any) -> None:
    ids = send("a", "b", "a", "b")
    fail_on([ids[0]], TransientError("503"))
    drain(["strict"])
    assert effects() == [ids[1], ids[3]]
    counts = dict(
        rows(
            "SELECT event_id, receive_count FROM jobs_delivery d JOIN jobs_subscription s"
            " ON s.id = d.subscription_id WHERE s.name = 'strict'"
        )
    )
    assert counts == {ids[0]: 1, ids[2]: 0}, "the one that never ran is not charged"
    routes.before_effect.clear()
    make_visible()
    drain(["strict"])
    assert effects() == [ids[1], ids[3], ids[0], ids[2]]


def test_an_unknown_failure_is_retried_and_buried_at_the_fifth_receive(send: Any) -> None:
    (bad, later) = send("a", "a")
    fail_on([bad], ValueError("boom"))
    for receive in range(1, 6):
        make_visible()
        drain(["strict"])
        buried = DeadLetter.objects.filter(event_id=bad)
        assert buried.exists() is (receive == 5)
    letter = DeadLetter.objects.get()
    assert (letter.cause, letter.receive_count) == ("exhausted", 5)
    assert [failure["receive"] for failure in letter.failures] == [1, 2, 3, 4, 5]
    drain(["strict"])
    assert effects() == [later], "the key's later messages flow on"


def test_retry_after_is_the_floor_of_the_wait(send: Any, settings: Any) -> None:
    settings.RETRY_BACKOFF_BASE = timedelta(seconds=1)
    (event_id,) = send("a", type_="do_loosely")
    fail_on([event_id], TransientError("429", retry_after=120))
    drain(["loose"])
    ((wait,),) = rows("SELECT extract(epoch FROM visible_at - clock_timestamp()) FROM jobs_delivery")
    assert 115 < wait <= 120


def test_a_sixth_receive_is_a_dead_letter_and_never_a_run(send: Any) -> None:
    (event_id,) = send("a", type_="do_loosely")
    for _ in range(5):  # five workers that took it and fell silent
        claim_all("loose")
        make_visible()
    drain(["loose"])
    assert effects() == []
    letter = DeadLetter.objects.get(event_id=event_id)
    assert (letter.cause, letter.receive_count) == ("worker_crash", 5)
    silent = [failure["receive"] for failure in letter.failures if failure["error_class"] == "LeaseExpired"]
    assert silent == [1, 2, 3, 4, 5], "each attempt that ended in silence is in its history"
    assert "worker" not in letter.failures[-1], "whoever finds it dead has not killed it"


def test_a_lease_that_ran_out_says_whose_it_was_while_that_is_known(send: Any) -> None:
    send("a", type_="do_loosely")
    subscription = Subscription.objects.get(name="loose")
    known, gone = processes.sign_on("worker", "host:1"), processes.sign_on("worker", "host:2")
    processes.sign_off("worker", "host:2")
    held: list[Any] = []
    for holder in (known, gone, 0, known):
        for part in range(subscription.partitions):
            queue.claim((subscription.pk, part), ordered=False, batch=9, window=99, holder=holder)
        ((failures,),) = rows("SELECT failures FROM jobs_delivery")
        held = [failure.get("worker") for failure in json.loads(failures or "[]")]
        make_visible()
    assert held == ["host:1", None, None]


def test_a_suspect_is_claimed_alone_and_its_mates_are_not_held_up_for_good(send: Any) -> None:
    ids = send(*["a", "b", "c", "d"], type_="do_loosely")
    held = sum(len(claim.messages) for claim in claim_all("loose"))
    assert held == 4
    make_visible()
    sizes = [len(claim.messages) for claim in claim_all("loose")]
    assert set(sizes) == {1}
    drain(["loose"])
    assert len(effects()) == 4 - len(sizes)
    assert len(ids) == 4


def test_who_fell_silent_twice_goes_only_to_a_lane_that_is_alone_and_holds_up_no_other(send: Any) -> None:
    (killer,) = send("a")
    subscription = Subscription.objects.get(name="strict")
    part = rows(
        "SELECT part FROM jobs_delivery JOIN jobs_subscription s ON s.id = subscription_id WHERE s.name = 'strict'"
    )[0][0]

    def claim(company: int) -> queue.Claim:
        return queue.claim((subscription.pk, part), ordered=True, batch=10, window=100, company=company)

    assert [len(claim(queue.IN_COMPANY).messages), make_visible(), len(claim(queue.IN_COMPANY).messages)] == [
        1,
        None,
        1,
    ]
    make_visible()
    (later,) = send("a")
    beside = claim(queue.IN_COMPANY)
    assert (beside.messages, beside.look.lonely) == ([], True), "neither it nor its key's next one"
    alone = claim(queue.ALONE)
    assert ([message.event_id for message in alone.messages], alone.look.lonely) == ([killer], False)
    assert alone.messages[0].receive_count == 3
    assert killer != later


def test_a_suspect_waits_for_the_earlier_message_of_its_key(send: Any) -> None:
    first, second = send("a", "a")
    (claim,) = claim_all("strict")
    queue.put_back(claim, [queue.PutBack(claim.messages[0], delay=60.0)])
    with connection.cursor() as cursor:  # the second one's holder fell silent
        cursor.execute("UPDATE jobs_delivery SET visible_at = clock_timestamp() WHERE event_id = %s", [second])
    assert claim_all("strict") == []
    assert first != second


def test_a_worker_that_lost_its_lease_commits_nothing(send: Any) -> None:
    (event_id,) = send("a", type_="do_loosely")
    (zombie,) = claim_all("loose")
    make_visible()
    (heir,) = claim_all("loose")
    assert settle("loose", zombie) == 0
    assert effects() == []
    assert not ProcessedMessage.objects.exists()
    assert settle("loose", heir) == 1
    assert effects() == [event_id]


@pytest.mark.parametrize("way", ["ack", "ack_some", "put_back", "bury", "renew", "give_back"])
def test_no_statement_of_a_lost_lease_touches_a_row(send: Any, way: str) -> None:
    send("a", type_="do_loosely")
    (zombie,) = claim_all("loose")
    make_visible()
    claim_all("loose")
    before = rows("SELECT * FROM jobs_delivery")
    (message,) = zombie.messages
    match way:
        case "ack":
            with transaction.atomic():
                assert queue.ack(zombie, "loose", [message]).gone == 0
        case "ack_some":
            with transaction.atomic():
                assert queue.ack_some(zombie, "loose", [message]) == queue.Acked(0, set())
        case "put_back":
            assert queue.put_back(zombie, [queue.PutBack(message)]) == 0
        case "bury":
            assert queue.bury(zombie, "loose", message, queue.Burial("permanent", "E", "r", "", 1)) is None
        case "renew":
            assert queue.renew([(zombie, message)]) == set()
        case "give_back":
            assert queue.give_back_claim(zombie) == 0
    assert rows("SELECT * FROM jobs_delivery") == before
    assert not rows("SELECT 1 FROM processed_messages UNION ALL SELECT 1 FROM jobs_deadletter")


def test_a_nul_byte_and_half_a_surrogate_in_an_error_are_still_written(send: Any) -> None:
    (event_id,) = send("a", type_="do_loosely")
    fail_on([event_id], PermanentError("bad \x00 text \ud800" + "x" * 100_000))
    drain(["loose"])
    letter = DeadLetter.objects.get()
    assert letter.reason.startswith("bad \N{REPLACEMENT CHARACTER} text \N{REPLACEMENT CHARACTER}xxx")
    assert len(letter.reason) == 2_000


def test_a_type_this_code_does_not_know_is_put_back_uncharged_and_blocks_only_its_key(send: Any) -> None:
    Subscription.objects.filter(name="strict").update(message_types=["thing.happened", "thing.invented_later"])
    (before,) = send("a")
    (unknown,) = send("a", type_="thing.invented_later")
    (after,) = send("a")
    (other,) = send("b")
    drain(["strict"])
    assert sorted(effects()) == sorted([before, other])
    waiting = rows(
        "SELECT event_id, receive_count FROM jobs_delivery d JOIN jobs_subscription s"
        " ON s.id = d.subscription_id WHERE s.name = 'strict' ORDER BY d.id"
    )
    assert waiting == [(unknown, 0), (after, 0)]
    assert not DeadLetter.objects.exists()


def test_a_failing_effect_leaves_neither_ledger_row_nor_follow_up(send: Any) -> None:
    (event_id,) = send("a", type_="do_loosely")

    def publish_then_fail(messages: Sequence[Message]) -> None:
        publish([NewMessage("thing.happened", "x", {"seq": 1})])
        raise IntegrityError("a constraint")

    routes.before_effect.append(publish_then_fail)
    drain(["loose"])
    assert rows("SELECT event_id FROM jobs_message") == [(event_id,)]
    assert not ProcessedMessage.objects.exists()


def test_a_paused_subscription_is_left_alone_and_resumes(send: Any) -> None:
    (event_id,) = send("a", type_="do_loosely")
    Subscription.objects.filter(name="loose").update(paused_at="2026-01-01T00:00:00Z")
    drain(["loose"])
    assert effects() == []
    Subscription.objects.filter(name="loose").update(paused_at=None)
    drain(["loose"])
    assert effects() == [event_id]
