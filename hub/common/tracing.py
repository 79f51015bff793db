"""Spans of OpenTelemetry traces. Without LLMEVAL_TRACES nothing of OpenTelemetry is imported."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from django.conf import settings

Attribute = str | bool | int | float


class Span(Protocol):
    """An open span."""

    def set(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes, or replace those with the same names."""


class _NoSpan:
    def set(self, attributes: Mapping[str, Attribute]) -> None:
        """Do nothing."""


@contextmanager
def span(name: str, attributes: Mapping[str, Attribute] | None = None, *, own_trace: bool = False) -> Iterator[Span]:
    """Record the block as a span below the span that is open in this task or thread.

    own_trace: begin a new trace instead, linked to that span. An error that leaves the block is recorded and raised.
    """
    if not settings.TRACES_URL:
        yield _NoSpan()
        return
    from opentelemetry import context, trace  # 30 ms of each command's start

    tracer = trace.get_tracer("llmeval")
    parent = trace.get_current_span().get_span_context()
    with tracer.start_as_current_span(
        name,
        context=context.Context() if own_trace else None,
        links=[trace.Link(parent)] if own_trace and parent.is_valid else [],
        attributes=dict(attributes or {}),
    ) as opened:
        yield _OpenSpan(opened.set_attributes)


class _OpenSpan:
    def __init__(self, set_attributes: "_SetAttributes") -> None:
        self._set_attributes = set_attributes

    def set(self, attributes: Mapping[str, Attribute]) -> None:
        self._set_attributes(dict(attributes))


class _SetAttributes(Protocol):
    def __call__(self, attributes: dict[str, Attribute]) -> None: ...
