"""Journeys of real messages through the real queue: what is told, how it is found, and how little it reads."""

import json
import threading
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from jobs import tracing
from jobs.dead_letters import redrive, services
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from jobs.dead_letters.store import now
from jobs.errors import PermanentError, TransientError
from jobs.journey import hooks, selectors, store
from jobs.journey.lanes import Lane, State
from jobs.messages import NewMessage
from jobs.models import DeadLetter, PastDelivery, Subscription
from jobs.outbox import publish
from jobs.worker import drain
from tests.jobs import routes
from tests.jobs.conftest import Publish, make_visible
from tests.jobs.test_settlement import fail_on
from tests.jobs.test_tracing import THEIRS


@pytest.fixture(autouse=True)
def _no_product(queue_db: None, settings: Any) -> Any:
    """The queue's own journeys: nobody knows of any wine."""
    settings.JOURNEYS = "tests.jobs.journey.nothing"
    hooks.load_journeys.cache_clear()
    yield
    hooks.load_journeys.cache_clear()


def lane_of(event_id: str, subscription: str) -> Lane:
    found = selectors.journey(event_id)
    assert found is not None
    (lane,) = [lane for lane in found.lanes if lane.subscription == subscription]
    return lane


def told(lane: Lane) -> list[str]:
    return [step.what for step in lane.steps]


def test_one_event_is_told_in_each_subscription_apart(send: Publish) -> None:
    (event_id,) = send("a")
    drain(["strict"])
    assert (lane_of(event_id, "strict").state, lane_of(event_id, "second").state) == (State.ACKED, State.AVAILABLE)
    assert told(lane_of(event_id, "strict")) == ["applied, and acked in the same transaction"]
    assert told(lane_of(event_id, "second")) == []


def test_receives_that_failed_are_still_told_when_the_last_has_gone_well(send: Publish) -> None:
    (event_id,) = send("a")
    for reason in ("503 once", "503 twice"):
        fail_on([event_id], TransientError(reason))
        make_visible()
        drain(["strict"])
        routes.before_effect.clear()
    assert lane_of(event_id, "strict").state == State.REDELIVERED
    make_visible()
    drain(["strict"])
    assert told(lane_of(event_id, "strict")) == [
        "handed out for the first time",
        "receive 1: TransientError: 503 once",
        "receive 2: TransientError: 503 twice",
        "applied on receive 3, and acked in the same transaction",
    ]


def test_receives_are_kept_of_those_alone_that_came_again(send: Publish) -> None:
    ids = send("a", "b", "c")
    fail_on(ids[:1], TransientError("503"))
    drain()
    routes.before_effect.clear()
    make_visible()
    drain()
    assert sorted(PastDelivery.objects.values_list("event_id", "subscription_name", "receive_count")) == sorted(
        (ids[0], name, 2) for name in ("strict", "second")
    )


def test_what_was_kept_of_an_attempt_is_rolled_back_with_it(send: Publish) -> None:
    (event_id,) = send("a")
    for _ in range(2):
        fail_on([event_id], TransientError("503"))
        drain(["strict"])
        routes.before_effect.clear()
        make_visible()
    assert not PastDelivery.objects.exists()


def test_what_the_ledger_suppressed_is_told(send: Publish) -> None:
    (event_id,) = send("a")
    with transaction.atomic():
        publish([NewMessage("thing.happened", "a", {}, event_id=event_id)])
        publish([NewMessage("do_outside", "a", {}, event_id=event_id)])
    drain(["strict", "outside"])
    with transaction.atomic():
        publish([NewMessage("thing.happened", "a", {}, event_id=event_id)])
        publish([NewMessage("do_outside", "a", {}, event_id=event_id)])
    drain(["strict", "outside"])
    for name in ("strict", "outside"):
        assert told(lane_of(event_id, name))[-1] == (
            "came again, on receive 1; the ledger knew it, so it had no effect"
        ), name


def test_a_dead_letter_is_told_with_its_decision_redrive_and_end(send: Publish) -> None:
    (event_id,) = send("a")
    fail_on([event_id], PermanentError("no price"))
    drain(["strict"])
    routes.before_effect.clear()
    letter = DeadLetter.objects.get()
    assert lane_of(event_id, "strict").now == f"Dead-lettered as letter {letter.pk}; it waits for a decision."
    run = services.redrive(
        selection=Selection(ids=(letter.pk,)), kind=Decision.REDRIVE, by="dana", note="mended", now=now()
    ).redrive
    assert run is not None
    redrive.step(run.pk)
    drain(["strict"])
    redrive.step(run.pk)
    steps = [(step.state, step.what) for step in lane_of(event_id, "strict").steps]
    assert (State.DEAD_LETTERED, f"letter {letter.pk}, after 1 receive: PermanentError: no price") in steps
    assert (State.DECIDED, "redrive by dana: mended") in steps
    assert (State.AVAILABLE, f"sent again by redrive {run.pk}") in steps
    assert (State.ACKED, f"redrive {run.pk}: applied") in steps
    assert [state for state, _ in steps][-1] == State.ACKED


def test_what_followed_from_it_is_told_with_its_own_lanes_and_leads_back(send: Publish) -> None:
    (event_id,) = send("a")
    with transaction.atomic():
        (command,) = publish([NewMessage("do_loosely", "k", {}, attributes={"caused_by": event_id})])
    drain(["loose"])
    found, back = selectors.journey(event_id), selectors.journey(command)
    assert found is not None
    assert back is not None
    (leg,) = found.follow_ups
    assert (leg.event_id, leg.lanes[0].subscription, leg.lanes[0].state) == (command, "loose", State.ACKED)
    assert back.caused_by == event_id


def test_a_message_beyond_what_is_looked_at_is_said_to_wait_and_not_to_be_lost(send: Publish, settings: Any) -> None:
    settings.JOURNEY_LOOK = 3
    *_, last = send(*"aaaaa")
    assert lane_of(last, "strict").now == "It waits behind more of its partition than were looked at."


def test_a_salted_subscriptions_delivery_is_found_in_its_partition(send: Publish) -> None:
    Subscription.objects.filter(name="strict").update(salt=3, partitions=7)
    for event_id in send(*"aaaaaa"):
        assert lane_of(event_id, "strict").now == "Available, and handed out when its turn comes."


def test_what_is_lost_is_said_to_be_lost(send: Publish) -> None:
    (event_id,) = send("a")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_delivery")
    assert "That should not be" in lane_of(event_id, "strict").now


def test_what_is_settled_while_it_is_read_is_never_seen_nowhere(send: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    (event_id,) = send("a")
    read: list[str] = []

    def settled_after_the_first(name: str) -> None:
        really = getattr(store, name)

        def then_it_is_applied(*arguments: Any) -> Any:
            found = really(*arguments)
            read.append(name)
            if len(read) == 1:
                elsewhere(lambda: drain(["strict"]))
            return found

        monkeypatch.setattr(store, name, then_it_is_applied)

    settled_after_the_first("waiting")
    settled_after_the_first("applied")
    assert lane_of(event_id, "strict").state in (State.AVAILABLE, State.ACKED)
    assert sorted(read) == ["applied", "waiting"]


def elsewhere(act: Callable[[], object]) -> None:
    """On a connection of its own."""

    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)


# --- Finding -----------------------------------------------------------------------------------------------------


def test_it_is_found_by_its_id_its_trace_and_the_id_of_its_request(queue_db: None) -> None:
    with tracing.request("POST", THEIRS, None), transaction.atomic():
        (event_id,) = publish([NewMessage("thing.happened", "a", {}, attributes={"request_id": "req_12345678"})])
    for text in (event_id, THEIRS, THEIRS.split("-")[1], f"  {THEIRS.split('-')[1].upper()} ", "req_12345678"):
        assert [found.event_id for found in selectors.find(text)] == [event_id], text
    for text in ("", "evt_nothing", "0" * 31 + "1", "req_"):
        assert selectors.find(text) == []


def test_an_id_that_no_index_finds_is_looked_for_among_the_newest_only(send: Publish, settings: Any) -> None:
    settings.JOURNEY_SEARCH = 3
    with transaction.atomic():
        publish([NewMessage("thing.happened", "a", {}, attributes={"request_id": "req_12345678"})])
    send("b", "b")
    assert len(selectors.find("req_12345678")) == 1
    send("b")
    assert selectors.find("req_12345678") == []


@pytest.mark.parametrize("text", ["x" * 301, "evt_\x00"])
def test_what_cannot_be_an_id_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="Search for an id of at most 300 characters"):
        selectors.find(text)


# --- What it reads -----------------------------------------------------------------------------------------------


def queries(event_id: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert selectors.journey(event_id) is not None
    return len(captured)


def test_a_journey_costs_the_same_queries_whatever_followed_and_shows_no_more_than_so_much(
    send: Publish, settings: Any
) -> None:
    settings.JOURNEY_SHOWN, settings.JOURNEY_COUNTED = 5, 20
    alone, some, many = send("a", "b", "c")
    with transaction.atomic():
        for cause, count in ((some, 1), (many, 40)):
            publish([NewMessage("do_loosely", "k", {}, attributes={"caused_by": cause}) for _ in range(count)])
    drain()
    assert queries(alone) == queries(some) == queries(many) <= 8
    found = selectors.journey(many)
    assert found is not None
    assert (len(found.follow_ups), found.counted, found.more) == (5, 20, True)


FILL = """
INSERT INTO jobs_message (event_id, type, key, body, attributes)
SELECT 'evt_fill_' || n, 'thing.happened', 'k' || n, '{}',
       CASE WHEN n % 10 = 0 THEN jsonb_build_object('caused_by', 'evt_fill_' || n - 1) ELSE '{}' END
       || jsonb_build_object('traceparent', '00-' || md5(n::text) || '-00f067aa0ba902b7-01')
FROM generate_series(1, 20000) n
"""
LEDGER = "INSERT INTO processed_messages SELECT 'strict', 'evt_fill_' || n FROM generate_series(1, 20000) n"


def test_no_statement_of_a_journey_reads_a_table_from_end_to_end(queue_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FILL.replace("%", "%%"), [])
        cursor.execute(LEDGER)
        cursor.execute("ANALYZE jobs_message")
        cursor.execute("ANALYZE processed_messages")
    with CaptureQueriesContext(connection) as captured:
        assert selectors.journey("evt_fill_9") is not None
        assert len(selectors.find(f"00-{md5_of(7)}-00f067aa0ba902b7-01")) == 1
    read: list[str] = []
    for query in captured:
        if query["sql"].lstrip().startswith(("SELECT", "WITH")):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {query['sql']}".replace("%", "%%"), [])
                (plan,) = cursor.fetchone()
            read += scanned((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])
    with connection.cursor() as cursor:  # to read an empty one from end to end is the quickest
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples > 1000")
        large = {name for (name,) in cursor.fetchall()}
    assert {name for name in large if name.startswith("jobs_message_")}
    assert "processed_messages" in large
    assert not large & set(read), "a table was read from end to end"


def scanned(node: dict[str, Any]) -> list[str]:
    own = [node["Relation Name"]] if node["Node Type"] == "Seq Scan" else []
    return own + [table for child in node.get("Plans", []) for table in scanned(child)]


def md5_of(number: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT md5(%s::text)", [str(number)])
        return str(cursor.fetchone()[0])


# --- The command -------------------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("journey", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_says_what_the_page_says_also_as_json(send: Publish) -> None:
    (event_id,) = send("a")
    drain(["strict"])
    text, told_ = run(event_id), json.loads(run(event_id, "--json"))
    assert "strict: acked. Applied, and acked with it." in text
    assert "Not told here" in text
    assert {lane["subscription"]: lane["state"] for lane in told_["lanes"]} == {
        "strict": "acked",
        "second": "available",
    }
    with pytest.raises(CommandError, match="Nothing is known of evt_nothing"):
        run("evt_nothing")


def test_the_command_lists_what_it_finds_where_that_is_more_than_one(queue_db: None) -> None:
    with tracing.request("POST", THEIRS, None), transaction.atomic():
        ids = publish([NewMessage("thing.happened", key, {}) for key in "ab"])
    assert [line.split()[0] for line in run(THEIRS).splitlines()] == ids
    assert [one["event_id"] for one in json.loads(run(THEIRS, "--json"))["found"]] == ids
