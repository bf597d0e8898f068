"""Trace context is carried and never changed; consumers' spans are roots with links; without an SDK nothing is made."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import transaction
from opentelemetry import trace
from opentelemetry.semconv._incubating.attributes import messaging_attributes as semconv
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind

from jobs import tracing
from jobs.dead_letters import redrive, services
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from jobs.dead_letters.store import now
from jobs.errors import PermanentError
from jobs.messages import NewMessage
from jobs.models import DeadLetter, LoggedMessage
from jobs.outbox import follow_up, publish
from jobs.worker import drain
from tests.jobs import routes
from tests.jobs.conftest import Publish, effects, make_visible
from tests.jobs.schedule.conftest import schedule  # noqa: F401
from tests.jobs.schedule.under_test import acts
from tests.jobs.test_settlement import fail_on
from tests.tracing import Traced, as_text, links, traced

THEIRS = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def spans() -> Iterator[Traced]:
    with traced() as found:
        yield found


def traceparent(event_id: str) -> str:
    return str(LoggedMessage.objects.get(event_id=event_id).attributes.get("traceparent", ""))


# --- Without an SDK ----------------------------------------------------------------------------------------------


def test_without_an_sdk_no_span_is_made_and_no_trace_is_minted(send: Publish) -> None:
    assert tracing.process("strict", []) is tracing.NO_SPAN
    assert tracing.performing("outside", None, len) is len  # type: ignore[arg-type]
    (event_id,) = send("a")
    assert LoggedMessage.objects.get(event_id=event_id).attributes == {}


def test_without_an_sdk_what_the_sender_said_goes_with_the_messages_of_its_request_and_no_others(send: Publish) -> None:
    with tracing.request("POST", THEIRS, "vendor=1"):
        (during,) = send("a")
    (after,) = send("a")
    assert LoggedMessage.objects.get(event_id=during).attributes == {"traceparent": THEIRS, "tracestate": "vendor=1"}
    assert LoggedMessage.objects.get(event_id=after).attributes == {}


def test_a_messages_own_context_is_not_mixed_with_another_senders_state(queue_db: None) -> None:
    own = {"traceparent": THEIRS.replace("4bf9", "5ca0")}
    with tracing.request("POST", THEIRS, "vendor=1"), transaction.atomic():
        publish([NewMessage("thing.happened", "a", {}, attributes=own)])
    assert LoggedMessage.objects.get().attributes == own


@pytest.mark.parametrize(
    "said",
    [
        "",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        THEIRS + "\n",
        THEIRS + "-extra",
    ],
)
def test_what_is_no_trace_context_is_not_carried(said: str) -> None:
    assert tracing.sent(said, "vendor=1") == {}


def test_a_tracestate_that_is_too_long_or_no_text_is_left_out_and_the_trace_is_kept() -> None:
    for state in ("x" * 513, "a\x00b", "é"):
        assert tracing.sent(THEIRS, state) == {"traceparent": THEIRS}


# --- Publishing and consuming ------------------------------------------------------------------------------------


def test_each_consumers_span_is_a_root_with_a_link_to_the_span_that_published(send: Publish, spans: Traced) -> None:
    (event_id,) = send("a")
    with tracing.outside("whatever the worker was about"):
        drain()
    sent = spans.one("send thing.happened")
    assert traceparent(event_id) == as_text(sent)
    for name in ("process strict", "process second"):
        span = spans.one(name)
        assert (span.kind, span.parent) == (SpanKind.CONSUMER, None)
        assert links(span) == [as_text(sent)]
        assert span.links[0].attributes == {semconv.MESSAGING_MESSAGE_ID: event_id}
    traces = {span.get_span_context().trace_id for span in spans.all()}
    assert len(traces) == 4, "the request is not pretended to have stayed open"


def test_the_attributes_are_those_of_the_semantic_conventions(send: Publish, spans: Traced) -> None:
    (event_id,) = send("a")
    drain(["strict"])
    common = {semconv.MESSAGING_SYSTEM: "jobs", semconv.MESSAGING_DESTINATION_NAME: "thing.happened"}
    common[semconv.MESSAGING_MESSAGE_ID] = event_id
    send_type, process_type = semconv.MessagingOperationTypeValues.SEND, semconv.MessagingOperationTypeValues.PROCESS
    assert spans.one("send thing.happened").attributes == common | {
        semconv.MESSAGING_OPERATION_NAME: "send",
        semconv.MESSAGING_OPERATION_TYPE: send_type.value,
    }
    assert spans.one("process strict").attributes == common | {
        semconv.MESSAGING_OPERATION_NAME: "process",
        semconv.MESSAGING_OPERATION_TYPE: process_type.value,
        semconv.MESSAGING_DESTINATION_SUBSCRIPTION_NAME: "strict",
    }


def test_a_batchs_span_is_linked_to_each_span_that_published_but_to_no_more_than_so_many(
    send: Publish, spans: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "MOST_LINKS", 3)
    ids = [*send("a", "a"), *send("a"), *send("a"), *send("a", "a", "a")]
    drain(["strict"])
    span = spans.one("process strict")
    assert span.attributes is not None
    assert span.attributes[semconv.MESSAGING_BATCH_MESSAGE_COUNT] == 7
    assert links(span) == list(dict.fromkeys(map(traceparent, ids)))[:3]
    assert span.links[0].attributes == {semconv.MESSAGING_BATCH_MESSAGE_COUNT: 2}, "one publish of two is one link"


def test_a_message_that_brings_its_own_context_keeps_it_and_the_span_that_sends_it_is_linked_to_it(
    queue_db: None, spans: Traced
) -> None:
    with transaction.atomic():
        own, other = publish(
            [
                NewMessage("thing.happened", "a", {}, attributes={"traceparent": THEIRS}),
                NewMessage("thing.happened", "a", {}),
            ]
        )
    sent = spans.one("send thing.happened")
    assert links(sent) == [THEIRS]
    assert traceparent(own) == THEIRS
    assert traceparent(other) == as_text(sent)


def test_retry_burial_and_redrive_leave_the_context_and_every_attempt_is_linked_to_the_same_span(
    send: Publish, spans: Traced
) -> None:
    (event_id,) = send("a")
    said, sent = traceparent(event_id), as_text(spans.one("send thing.happened"))
    fail_on([event_id], RuntimeError("a body may stand here"))
    drain(["strict"])
    routes.before_effect.clear()
    fail_on([event_id], PermanentError("nor here"))
    make_visible()
    drain(["strict"])
    routes.before_effect.clear()
    letter = DeadLetter.objects.get()
    assert letter.attributes["traceparent"] == said
    run = services.redrive(
        selection=Selection(ids=(letter.pk,)), kind=Decision.REDRIVE, by="b", note="n", now=now()
    ).redrive
    assert run is not None
    redrive.step(run.pk)
    drain(["strict"])
    assert effects() == [event_id]
    attempts = spans.named("process strict")
    assert [links(attempt) for attempt in attempts] == [[sent]] * 3
    assert LoggedMessage.objects.get(event_id=event_id).attributes["traceparent"] == said
    failed = [(a.attributes or {}).get(error_attributes.ERROR_TYPE) for a in attempts]
    assert failed == ["RuntimeError", "PermanentError", None]
    told = repr([(a.status.description, a.events, a.attributes) for a in attempts])
    assert "a body may stand here" not in told
    assert "nor here" not in told


def test_what_a_handler_publishes_has_the_handlers_span_as_its_producer(send: Publish, spans: Traced) -> None:
    def answer(messages: Any) -> None:
        for message in messages:
            attributes = follow_up(message.attributes, caused_by=message.event_id)
            publish([NewMessage("do_loosely", "k", {}, attributes=attributes)])

    routes.before_effect.append(answer)
    (event_id,) = send("a")
    drain(["strict"])
    routes.before_effect.clear()
    drain(["loose"])
    sent, handled = spans.one("send do_loosely"), spans.one("process strict")
    assert sent.parent is not None
    assert sent.parent.span_id == handled.get_span_context().span_id
    assert links(spans.one("process loose")) == [as_text(sent)]
    command = LoggedMessage.objects.get(type="do_loosely")
    assert command.attributes == {"caused_by": event_id, "traceparent": as_text(sent)}


def test_an_effect_outside_has_a_span_of_its_own_in_the_thread_that_does_it(queue_db: None, spans: Traced) -> None:
    inside: list[str] = []
    routes.perform_with.append(lambda task: inside.append(as_text_of_now()))
    with transaction.atomic():
        publish([NewMessage("do_outside", str(n), {"n": n}) for n in range(2)])
    drain(["outside"])
    sent = as_text(spans.one("send do_outside"))
    effects_ = spans.named("process outside")
    assert sorted(map(as_text, effects_)) == sorted(inside)
    assert [links(span) for span in effects_] == [[sent], [sent]]
    assert {link for span in spans.named("settle outside") for link in links(span)} == {sent}


def as_text_of_now() -> str:
    context = trace.get_current_span().get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def test_a_scheduled_run_is_a_root_and_what_it_publishes_descends_from_it(schedule: Any, spans: Traced) -> None:  # noqa: F811
    def publishing(run: Any) -> None:
        with run.fenced():
            publish([NewMessage("nobody.listens", "k", {})])

    acts["nightly"] = publishing
    call_command("run_job", "nightly", "--for", "2026-03-14")
    run, sent = spans.one("run nightly"), spans.one("send nobody.listens")
    assert (run.kind, run.parent) == (SpanKind.INTERNAL, None)
    assert run.attributes == {"job.slot": "2026-03-14T02:00:00+00:00", "job.attempt": 1}
    assert sent.parent is not None
    assert sent.parent.span_id == run.get_span_context().span_id


def test_log_lines_name_the_trace_and_span_they_were_written_in(spans: Traced) -> None:
    with tracing.outside("an exchange"):
        line = tracing.add_ids(None, "info", {"event": "x"})
    context = spans.one("an exchange").get_span_context()
    assert line == {"event": "x", "trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
    assert tracing.add_ids(None, "info", {"event": "x"}) == {"event": "x"}


def test_a_request_that_is_only_carried_on_has_its_trace_in_the_logs_too() -> None:
    with tracing.request("POST", THEIRS, None):
        assert tracing.add_ids(None, "info", {}) == {"trace_id": THEIRS.split("-")[1]}


def test_an_exporter_that_is_not_known_is_refused_when_the_process_starts(settings: Any) -> None:
    settings.TRACES_EXPORTER = "zipkin"
    with pytest.raises(ImproperlyConfigured, match="OTEL_TRACES_EXPORTER is 'zipkin'; it may be otlp or none"):
        tracing.set_up()
