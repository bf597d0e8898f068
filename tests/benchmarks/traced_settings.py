"""The benchmarks' settings, in a process where somebody set up an SDK that throws its spans away, if TRACED says so."""

import os

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tests.benchmarks.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.benchmarks.traced_app.Traced"]  # noqa: F405


class ToNobody(SpanExporter):
    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


if os.environ["TRACED"] == "sdk":
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(ToNobody()))
    trace.set_tracer_provider(provider)
