"""Real processes with the real SDK: what a worker exports, to a receiver of OTLP on loopback."""

import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.db import transaction
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from jobs.messages import NewMessage
from jobs.models import Delivery
from jobs.outbox import publish
from tests.jobs.test_tracing import THEIRS
from tests.processes.conftest import Processes, wait_until

pytestmark = pytest.mark.processes


class Collector:
    """Takes what is exported, as an OpenTelemetry collector does."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Any]] = []  # service name, span
        taken = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    named = {each.key: each.value.string_value for each in resource.resource.attributes}
                    taken.extend((named["service.name"], s) for scope in resource.scope_spans for s in scope.spans)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "600000",  # so that only its end makes it send
        }


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_worker_that_is_told_to_stop_has_exported_its_spans_with_their_links(
    queue_db: None, processes: Processes, collector: Collector
) -> None:
    with transaction.atomic():
        (event_id,) = publish([NewMessage("thing.happened", "a", {}, attributes={"traceparent": THEIRS})])
    worker = processes.worker(
        "strict",
        "second",
        DJANGO_SETTINGS_MODULE="tests.jobs.process_settings",
        OTEL_SERVICE_NAME="cellar-worker",
        **collector.environment,
    )
    wait_until(lambda: not Delivery.objects.exists(), what="both have applied it")
    os.kill(worker.pid, signal.SIGTERM)
    assert worker.wait(timeout=30) == 0
    spans = {span.name: span for _, span in collector.spans}
    assert {service for service, _ in collector.spans} == {"cellar-worker"}
    for name in ("process strict", "process second"):
        (link,) = spans[name].links
        assert link.trace_id.hex() == THEIRS.split("-")[1], name
        assert (link.span_id.hex(), spans[name].parent_span_id) == (THEIRS.split("-")[2], b"")
    named = {each.key: each.value.string_value for each in spans["process strict"].attributes}
    assert named["messaging.message.id"] == event_id
