"""What every export shares: what it reports, lines as they are written, failing responses in order."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from django.db.models import QuerySet

from hub.bundles.loader import Bundle, open_archive
from hub.common.errors import UserError
from hub.models import EnvironmentVersion
from hub.protocols.messages import JSON
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.results.counting import defective_cases
from runs.selectors import responses_matching

CHUNK = 200  # responses read at a time; transcripts may be long


class ExportError(UserError):
    """This cannot be exported; the text says why and what to do instead."""


@dataclass(slots=True)
class ExportReport:
    """How much was written, and how many were left out, by why."""

    written: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What to export: the failed responses of *run* in the environments *parts*, narrowed by the other fields.

    `q` and `flag` are the filters of the list of responses.
    """

    run: Run
    model: RunModel | None = None
    parts: list[RunEnvironment]
    q: str = ""
    flag: str = ""

    def of(self, part: RunEnvironment) -> QuerySet[Response]:
        """Failed responses in the order of cases; cases that were found wrong are left out."""
        found = Response.objects.filter(run_environment=part, status=Response.Status.FAILED, run_model__role="")
        if self.model is not None:
            found = found.filter(run_model=self.model)
        found = responses_matching(found, q=self.q, flag=self.flag)
        return (
            found.exclude(case_id__in=defective_cases(part))
            .select_related("case", "run_model")
            .prefetch_related("scores")
            .order_by("case__position", "run_model__position", "attempt")
        )


def run_model(run: Run, label: str | None) -> RunModel | None:
    """The answering model of *run* with that label, None where no label is given. Raises ExportError."""
    if label is None:
        return None
    models = {model.label: model for model in run.models.filter(role="")}
    if label not in models:
        raise ExportError(f"Run {run.pk} has no model {label!r}; its models are {', '.join(models)}.", "model")
    return models[label]


def run_parts(run: Run, slug: str | None) -> list[RunEnvironment]:
    """The environment *slug* of *run*, or all of them. Raises ExportError."""
    parts = {
        part.version.environment.slug: part
        for part in run.environments.select_related("version__environment").order_by("position")
    }
    if slug is None:
        return list(parts.values())
    if slug not in parts:
        raise ExportError(
            f"Run {run.pk} has no environment {slug!r}; its environments are {', '.join(parts)}.", "environment"
        )
    return [parts[slug]]


def is_held_out(version: EnvironmentVersion) -> bool:
    """The author's word in the manifest counts as much as a curator's, who can only tighten it."""
    return version.environment.held_out or bool(version.manifest.get("held_out"))


def refuse_held_out(versions: Iterable[EnvironmentVersion], instead: str = "") -> None:
    """Raise ExportError if one of *versions* is held out; *instead* is what else may be done."""
    held = [str(version) for version in versions if is_held_out(version)]
    if held:
        raise ExportError(
            f"{', '.join(held)} is held out: training on it would make every later score on it meaningless. "
            f"Choose an environment that is not held out{', ' + instead if instead else ''}.",
            "environment",
        )


def usage_of(response: Response) -> dict[str, JSON]:
    return {
        "input": response.input_tokens,
        "output": response.output_tokens,
        "cached_input": response.cached_input_tokens,
        "reasoning": response.reasoning_tokens,
    }


@contextmanager
def opened(version: EnvironmentVersion) -> Iterator[Bundle]:
    with open_archive(version.archive.open("rb")) as bundle:
        yield bundle


@contextmanager
def lines(path: Path, exported: ExportReport) -> Iterator[Callable[[str], None]]:
    """Writes and counts lines. The file is made by the first of them."""
    with ExitStack() as stack:
        file: IO[bytes] | None = None

        def write(line: str) -> None:
            nonlocal file
            file = file or stack.enter_context(path.open("wb"))
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")
            exported.written += 1

        yield write
