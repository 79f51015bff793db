"""Sends traces to an OpenTelemetry collector, if LLMEVAL_TRACES names one.

Requests to the site and Celery tasks are traced by OpenTelemetry's own packages; runs, responses and calls of models by
`hub.common.tracing.span`. The standard variables of the SDK apply: OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER,
OTEL_EXPORTER_OTLP_HEADERS and others.
"""

import os

from django.core.exceptions import ImproperlyConfigured


def start_tracing(url: str) -> None:
    """Send the spans of this process, and of those that are forked from it, to the collector at *url*.

    Raises ImproperlyConfigured if the packages of the extra `traces` are missing.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.celery import CeleryInstrumentor
        from opentelemetry.instrumentation.django import DjangoInstrumentor
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ImproperlyConfigured(
            f"LLMEVAL_TRACES needs the extra traces ({error}): pip install 'llm-eval[traces]', "
            "or pip install -r requirements-traces.txt in a checkout."
        ) from None
    name = os.environ.get("OTEL_SERVICE_NAME", "llm-eval")
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{url.rstrip('/')}/v1/traces")))
    trace.set_tracer_provider(provider)
    DjangoInstrumentor().instrument(excluded_urls="healthz,readyz,metrics")
    CeleryInstrumentor().instrument()  # type: ignore[no-untyped-call]
