"""Additions of higher apps to a run's log in MLflow: metrics, tables and assessments. The apps register in ready()."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from hub.protocols.messages import JSON
from runs.models import Run

SourceType = Literal["HUMAN", "LLM_JUDGE", "CODE"]  # MLflow's names


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Verdict of a person, a model or code on one response.

    `key` is unique among the assessments of a response and the same at every logging. `overrides` is the key of the
    assessment that this one replaces; that one comes earlier in the list.
    """

    key: str
    name: str
    value: bool | float | str
    source_type: SourceType
    source: str
    rationale: str = ""
    overrides: str = ""
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAddition:
    """`metrics` of the run, `cells` by (RunEnvironment id, RunModel id), `tables` by name: rows with the same keys."""

    metrics: dict[str, float] = field(default_factory=dict)
    cells: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)
    tables: dict[str, list[dict[str, JSON]]] = field(default_factory=dict)


class AdditionSource(ABC):
    """Additions of one app, read again whenever a run is logged."""

    @abstractmethod
    def latest_changes(self) -> dict[int, datetime]:
        """Return run id -> when its additions last changed."""

    @abstractmethod
    def addition(self, run: Run) -> LogAddition:
        """Return metrics and tables of *run*."""

    @abstractmethod
    def assessments(self, run: Run) -> dict[int, list[Assessment]]:
        """Return response id -> assessments of its trace. Logged assessments that are not among them are deleted."""


_sources: list[AdditionSource] = []


def register(source: AdditionSource) -> None:
    """Log the additions of *source* with every run from now on."""
    _sources.append(source)


def combined_addition(run: Run) -> LogAddition:
    """Return the additions of all apps to the log of *run*."""
    combined = LogAddition()
    for source in _sources:
        addition = source.addition(run)
        combined.metrics.update(addition.metrics)
        combined.tables.update(addition.tables)
        for cell, metrics in addition.cells.items():
            combined.cells.setdefault(cell, {}).update(metrics)
    return combined


def all_assessments(run: Run) -> dict[int, list[Assessment]]:
    """Return response id -> assessments of all apps."""
    found: dict[int, list[Assessment]] = {}
    for source in _sources:
        for response, items in source.assessments(run).items():
            found.setdefault(response, []).extend(items)
    return found


def latest_changes() -> dict[int, datetime]:
    """Return run id -> when any addition last changed."""
    found: dict[int, datetime] = {}
    for source in _sources:
        for run, moment in source.latest_changes().items():
            found[run] = max(moment, found.get(run, moment))
    return found
