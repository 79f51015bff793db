"""What apps above `runs` add to a run's log in MLflow: metrics, tables, assessments. They register it from ready()."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from hub.protocols.messages import JSON
from runs.models import Run

SourceType = Literal["HUMAN", "LLM_JUDGE", "CODE"]  # MLflow's names


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What somebody or something said of one response.

    `key` is the same at every logging and no other's on that response. `overrides` is the key of one in whose place
    this one stands; it comes earlier in the list.
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
class Added:
    """`metrics` of the run; `cells` by (RunEnvironment id, RunModel id); `tables` by name, rows of the same keys."""

    metrics: dict[str, float] = field(default_factory=dict)
    cells: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)
    tables: dict[str, list[dict[str, JSON]]] = field(default_factory=dict)


class Addition(ABC):
    """One app's share of the log, read anew whenever a run is logged."""

    @abstractmethod
    def newest(self) -> dict[int, datetime]:
        """Run id -> when there was last something new to log of it."""

    @abstractmethod
    def added(self, run: Run) -> Added:
        """Metrics and tables of *run*."""

    @abstractmethod
    def assessments(self, run: Run) -> dict[int, list[Assessment]]:
        """Response id -> what is to be seen on its trace; earlier ones that are no longer here are taken away."""


_additions: list[Addition] = []


def register(addition: Addition) -> None:
    """Log what *addition* has, with every run from now on."""
    _additions.append(addition)


def added(run: Run) -> Added:
    """All that is added to the log of *run*."""
    found: dict[str, dict[Any, Any]] = {"metrics": {}, "cells": {}, "tables": {}}
    for addition in _additions:
        item = addition.added(run)
        found["metrics"] |= item.metrics
        found["tables"] |= item.tables
        for cell, metrics in item.cells.items():
            found["cells"][cell] = {**found["cells"].get(cell, {}), **metrics}
    return Added(**found)


def assessments(run: Run) -> dict[int, list[Assessment]]:
    found: dict[int, list[Assessment]] = {}
    for addition in _additions:
        for response, items in addition.assessments(run).items():
            found.setdefault(response, []).extend(items)
    return found


def newest() -> dict[int, datetime]:
    """Run id -> when anything was last added."""
    found: dict[int, datetime] = {}
    for addition in _additions:
        for run, moment in addition.newest().items():
            found[run] = max(moment, found.get(run, moment))
    return found
