"""Traces: W3C trace context in messages' attributes, and spans where an OpenTelemetry SDK is set up. Knows no wine.

Guarantee: without an SDK no span is made, and what a request's sender said of its trace is carried on all the same. A
message's trace context is written once, by whoever publishes it. A consumer's span is a root of its own, linked to the
spans that published what it handles. Called by the middleware, the outbox, the executors, the schedule and the logs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from jobs.messages import Message, NewMessage

PARENT, STATE = "traceparent", "tracestate"  # the names in a message's attributes, as W3C has them
ROOT = Context()  # of a span that has no parent
SYSTEM = "jobs"  # what the semantic conventions call the messaging system: none of the well-known ones
MOST_LINKS = 128  # of one span; the SDK keeps as many unless told otherwise
LONGEST_STATE = 512
ID, COUNT = "messaging.message.id", "messaging.batch.message_count"
NOTHING: Mapping[str, str] = MappingProxyType({})

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_TRACESTATE = re.compile(r"[\x20-\x7e]+")

_tracer: trace.Tracer | None = None  # None: nobody listens, so nothing is made
# What the sender of the request at hand said, while nobody listens: it is then our messages' own trace context.
_sender: ContextVar[Mapping[str, str]] = ContextVar("sender", default=NOTHING)


# --- Setting up --------------------------------------------------------------------------------------------------


def set_up() -> None:
    """Once per process, when Django is ready: whether spans are made. Whoever runs us may have set up an SDK before.

    Raises ImproperlyConfigured where settings.TRACES_EXPORTER names what is not there.
    """
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider) and settings.TRACES_EXPORTER != "none":
        provider = _sdk(settings.TRACES_EXPORTER)
        trace.set_tracer_provider(provider)
    use(provider)


def use(provider: trace.TracerProvider | None) -> None:
    """Make spans by this one; none by none, or by one that would throw them away."""
    global _tracer  # noqa: PLW0603  (one flag per process, so that nobody pays for what nobody listens to)
    mute = provider is None or isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    _tracer = None if mute or provider is None else provider.get_tracer("jobs")


def _sdk(exporter: str) -> trace.TracerProvider:
    """The SDK, which sends what it makes by OTLP over HTTP. Its own settings (OTEL_…) it reads itself."""
    if exporter != "otlp":
        raise ImproperlyConfigured(f"OTEL_TRACES_EXPORTER is {exporter!r}; it may be otlp or none.")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise ImproperlyConfigured(
            "OTEL_TRACES_EXPORTER is otlp, and the SDK is not installed; see docs/tracing.md."
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": settings.TRACES_SERVICE_NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


# --- Trace context as text -----------------------------------------------------------------------------------------


def sent(traceparent: str | None, tracestate: str | None = None) -> Mapping[str, str]:
    """What somebody else said of their trace, as attributes; nothing where it is not well-formed."""
    if not traceparent or not _TRACEPARENT.fullmatch(traceparent):
        return NOTHING
    if tracestate and len(tracestate) <= LONGEST_STATE and _TRACESTATE.fullmatch(tracestate):
        return {PARENT: traceparent, STATE: tracestate}
    return {PARENT: traceparent}


def trace_id(attributes: Mapping[str, str]) -> str:
    """The trace that a message belongs to, or ""."""
    found = _TRACEPARENT.fullmatch(attributes.get(PARENT, ""))
    return found[1] if found else ""


def named(attributes: Mapping[str, str]) -> dict[str, str]:
    """For a log line about a message: its trace, where it has one."""
    found = trace_id(attributes)
    return {"trace_id": found} if found else {}


def _written(context: SpanContext) -> dict[str, str]:
    said = {PARENT: f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"}
    return {**said, STATE: context.trace_state.to_header()} if context.trace_state else said


def _read(attributes: Mapping[str, str]) -> SpanContext | None:
    found = _TRACEPARENT.fullmatch(attributes.get(PARENT, ""))
    if found is None:
        return None
    state = TraceState.from_header([attributes[STATE]]) if STATE in attributes else None
    return SpanContext(int(found[1], 16), int(found[2], 16), True, TraceFlags(int(found[3], 16)), state)


def handed_on(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """A message's attributes for what follows from it: where spans are made, its trace context is the handler's."""
    if _tracer is None:
        return attributes
    return {name: value for name, value in attributes.items() if name not in (PARENT, STATE)}


def with_trace(attributes: Mapping[str, str]) -> dict[str, str]:
    """Attributes with the trace context of here and now, for what is kept and published later, or never."""
    if PARENT in attributes:
        return dict(attributes)
    if _tracer is None:
        return {**_sender.get(), **attributes}
    context = trace.get_current_span().get_span_context()
    return {**_written(context), **attributes} if context.is_valid else dict(attributes)


# --- Publishing ------------------------------------------------------------------------------------------------


def send(messages: Sequence[NewMessage]) -> AbstractContextManager[Mapping[str, str]]:
    """Around publishing; gives the trace context of the messages that bring none of their own."""
    return nullcontext(_sender.get()) if _tracer is None else _send(_tracer, messages)


@contextmanager
def _send(tracer: trace.Tracer, messages: Sequence[NewMessage]) -> Iterator[Mapping[str, str]]:
    # A context that a sender gave to one of its events is not ours to change; the span that sends it says so by a link.
    brought = [(message.event_id, message.attributes) for message in messages if PARENT in message.attributes]
    destination = _destination(message.type for message in messages)
    with tracer.start_as_current_span(
        f"send {destination}" if destination else "send",
        kind=SpanKind.PRODUCER,
        attributes=_about("send", "send", destination, [message.event_id for message in messages]),
        links=_links(brought),
        record_exception=False,
    ) as span:
        yield _written(span.get_span_context())


def _destination(types: Iterable[str]) -> str:
    """The type, where all are of one."""
    all_types = set(types)
    return all_types.pop() if len(all_types) == 1 else ""


def _about(operation: str, kind: str, destination: str, event_ids: Sequence[str]) -> dict[str, Any]:
    """Attributes by the messaging semantic conventions."""
    about: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
    }
    if destination:
        about["messaging.destination.name"] = destination
    if len(event_ids) == 1:
        about[ID] = event_ids[0]
    else:
        about[COUNT] = len(event_ids)
    return about


def _links(published: Sequence[tuple[str, Mapping[str, str]]]) -> list[Link]:
    """One link for each span that published some of these; it names the message where it is one."""
    of_span: dict[tuple[str, str], list[str]] = {}
    for event_id, attributes in published:
        said = (attributes.get(PARENT, ""), attributes.get(STATE, ""))
        if said[0] and (said in of_span or len(of_span) < MOST_LINKS):
            of_span.setdefault(said, []).append(event_id)
    links = []
    for (parent, state), event_ids in of_span.items():
        context = _read({PARENT: parent, STATE: state} if state else {PARENT: parent})
        if context is not None:
            one = len(event_ids) == 1
            name, value = (ID, event_ids[0]) if one else (COUNT, len(event_ids))
            links.append(Link(context, {name: value}))
    return links


# --- Consuming -------------------------------------------------------------------------------------------------

NO_SPAN: AbstractContextManager[None] = nullcontext()


def process(subscription: str, messages: Sequence[Message]) -> AbstractContextManager[None]:
    """Around one attempt at a batch: a root of its own, linked to the spans that published it."""
    return NO_SPAN if _tracer is None else _consume(_tracer, "process", subscription, messages)


def settle(subscription: str, messages: Sequence[Message]) -> AbstractContextManager[None]:
    """Around writing what came of effects outside our Postgres; what is published there follows from them."""
    return NO_SPAN if _tracer is None else _consume(_tracer, "settle", subscription, messages)


def performing(subscription: str, message: Message, perform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An effect outside our Postgres, with its span: the pool's thread that runs it has no other."""
    tracer = _tracer
    if tracer is None:
        return perform

    def traced(task: Any) -> Any:
        with _consume(tracer, "process", subscription, [message]):
            return perform(task)

    return traced


@contextmanager
def _consume(tracer: trace.Tracer, operation: str, subscription: str, messages: Sequence[Message]) -> Iterator[None]:
    about = _about(
        operation,
        operation,
        _destination(message.type for message in messages),
        [message.event_id for message in messages],
    )
    with (
        tracer.start_as_current_span(
            f"{operation} {subscription}",
            context=ROOT,
            kind=SpanKind.CONSUMER,
            attributes={**about, "messaging.destination.subscription.name": subscription},
            links=_links(_attributes(messages)),
            record_exception=False,
            set_status_on_exception=False,
        ) as span,
        _failing(span),
    ):
        yield


def _attributes(messages: Sequence[Message]) -> list[tuple[str, Mapping[str, str]]]:
    """Those of each message. What was published together has the same text, which is read once."""
    read: dict[str | None, Mapping[str, str]] = {}
    found = []
    for message in messages:
        text = message.attributes_text
        if text not in read:
            read[text] = message.attributes
        found.append((message.event_id, read[text]))
    return found


@contextmanager
def _failing(span: trace.Span) -> Iterator[None]:
    """An error is told by its class alone: its text may hold a body, or an address."""
    try:
        yield
    except BaseException as error:
        span.set_status(StatusCode.ERROR, type(error).__name__)
        span.set_attribute("error.type", type(error).__qualname__)
        raise


# --- What else takes time ----------------------------------------------------------------------------------------


def outside(name: str, **attributes: str) -> AbstractContextManager[None]:
    """Around one exchange with another side: a mail handed over, a post."""
    return NO_SPAN if _tracer is None else _plain(_tracer, name, SpanKind.CLIENT, None, attributes)


def scheduled(job: str, slot: str, attempt: int) -> AbstractContextManager[None]:
    """Around one attempt at a slot of a scheduled job: a root, which what it publishes descends from."""
    if _tracer is None:
        return NO_SPAN
    return _plain(_tracer, f"run {job}", SpanKind.INTERNAL, ROOT, {"job.slot": slot, "job.attempt": attempt})


@contextmanager
def _plain(
    tracer: trace.Tracer, name: str, kind: SpanKind, context: Context | None, attributes: Mapping[str, Any]
) -> Iterator[None]:
    with (
        tracer.start_as_current_span(
            name,
            context=context,
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span,
        _failing(span),
    ):
        yield


class Requested:
    """A request's span, as far as whoever answers it has something to say."""

    def __init__(self, span: trace.Span | None = None) -> None:
        self._span = span

    def answered(self, method: str, route: str | None, status: int) -> None:
        """`route` is the address's pattern, for its parts may be keys; None where nobody was asked."""
        if self._span is None:
            return
        self._span.set_attribute("http.response.status_code", status)
        if route is not None:
            self._span.set_attribute("http.route", route)
            self._span.update_name(f"{method} {route}")
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)
            self._span.set_attribute("error.type", str(status))


_UNSEEN = Requested()


def request(method: str, traceparent: str | None, tracestate: str | None) -> AbstractContextManager[Requested]:
    """Around one request: a child of its sender's span, for the sender waits. Where nobody listens, what it said is
    kept for the messages it makes."""
    if _tracer is None and not traceparent:
        return nullcontext(_UNSEEN)
    return _request(_tracer, method, sent(traceparent, tracestate))


@contextmanager
def _request(tracer: trace.Tracer | None, method: str, said: Mapping[str, str]) -> Iterator[Requested]:
    if tracer is None:
        token = _sender.set(said)
        try:
            yield _UNSEEN
        finally:
            _sender.reset(token)
        return
    parent = _read(said)
    context = trace.set_span_in_context(trace.NonRecordingSpan(parent), ROOT) if parent else ROOT
    attributes = {"http.request.method": method}
    with tracer.start_as_current_span(
        method, context=context, kind=SpanKind.SERVER, attributes=attributes, record_exception=False
    ) as span:
        yield Requested(span)


# --- Logs ------------------------------------------------------------------------------------------------------


def add_ids(logger: Any, method: str, line: dict[str, Any]) -> dict[str, Any]:
    """A processor of structlog's: the trace and the span in which a line was written."""
    if _tracer is None:
        said = _sender.get()
        if said:
            line["trace_id"] = trace_id(said)
        return line
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        line["trace_id"], line["span_id"] = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    return line
