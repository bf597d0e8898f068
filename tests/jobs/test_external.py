"""Effects outside Postgres: no transaction while they happen, each settled on its own, failures classified."""

from typing import Any

from jobs.database import in_transaction
from jobs.errors import PermanentError, TransientError
from jobs.models import DeadLetter, Delivery, ProcessedMessage
from jobs.worker import drain
from tests.jobs import routes
from tests.jobs.conftest import effects, make_visible, rows


def test_an_external_effect_happens_with_no_transaction_open_and_is_recorded_once(send: Any) -> None:
    ids = send(*"abcdefghij", type_="do_outside")
    open_transactions: list[bool] = []
    routes.perform_with.append(lambda task: open_transactions.append(in_transaction()))
    drain(["outside"])
    assert sorted(effects()) == sorted(ids)
    assert open_transactions == [False] * 10
    assert not Delivery.objects.exists()


def test_what_is_no_longer_wanted_is_settled_without_the_effect(send: Any) -> None:
    (event_id,) = send("a", type_="do_outside", unwanted=True)
    done: list[Any] = []
    routes.perform_with.append(done.append)
    drain(["outside"])
    assert done == []
    assert ProcessedMessage.objects.filter(event_id=event_id).exists()
    assert not Delivery.objects.exists()


def test_an_effect_already_in_the_ledger_is_not_performed_again(send: Any) -> None:
    (event_id,) = send("a", type_="do_outside")
    ProcessedMessage.objects.create(consumer_name="outside", event_id=event_id, processed_at="2026-01-01T00:00:00Z")
    done: list[Any] = []
    routes.perform_with.append(done.append)
    drain(["outside"])
    assert done == []
    assert not Delivery.objects.exists()


def test_a_failing_effect_is_retried_and_a_permanent_one_is_buried_while_the_others_go_on(send: Any) -> None:
    ids = send(*"abcd", type_="do_outside")

    def fail_some(task: Any) -> None:
        if task["seq"] == 2:
            raise TransientError("provider: 503", retry_after=9)
        if task["seq"] == 3:
            raise PermanentError("recipient refused: 550")

    routes.perform_with.append(fail_some)
    drain(["outside"])
    assert sorted(effects()) == sorted([ids[0], ids[3]])
    assert DeadLetter.objects.get().event_id == ids[2]
    assert rows("SELECT event_id, receive_count FROM jobs_delivery") == [(ids[1], 1)]
    routes.perform_with.clear()
    make_visible()
    drain(["outside"])
    assert len(effects()) == 3
