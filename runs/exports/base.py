"""What every export shares: what it reports, files that appear whole or not at all, failing responses in order."""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from django.db.models import QuerySet

from hub.bundles.loader import Bundle, open_archive
from hub.models import EnvironmentVersion
from hub.ports import JSON, Message
from runs.counting import quarantined_cases
from runs.models import Response, Run, RunEnvironment, RunModel

CHUNK = 200  # responses read at a time; transcripts may be long


class ExportError(ValueError):
    """This cannot be exported; the text says why and what to do instead."""


@dataclass(slots=True)
class Exported:
    """How much was written, and how many were left out, by why."""

    written: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What to export: the failed responses of *run*, of one model or environment where these are given."""

    run: Run
    model: RunModel | None = None
    parts: list[RunEnvironment]

    def of(self, part: RunEnvironment) -> QuerySet[Response]:
        """Failed responses in the order of cases; cases that were found wrong are left out."""
        found = Response.objects.filter(run_environment=part, status=Response.Status.FAILED, run_model__role="")
        if self.model is not None:
            found = found.filter(run_model=self.model)
        return (
            found.exclude(case_id__in=quarantined_cases(self.run, part))
            .select_related("case", "run_model")
            .prefetch_related("scores")
            .order_by("case__position", "run_model__position", "attempt")
        )


def opening(messages: list[Message]) -> list[Message]:
    """What stands before the first answer."""
    first = next((i for i, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    return messages[:first]


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
def whole_file(path: Path, exported: Exported) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        temporary = Path(file.name)
        try:
            yield file
        except BaseException:
            temporary.unlink()
            raise
    if exported.written:
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # as any other file; temporary ones are for their owner alone
        temporary.replace(path)
        exported.files.append(path)
    else:
        temporary.unlink()


@contextmanager
def lines(path: Path, exported: Exported) -> Iterator[Callable[[dict[str, JSON]], None]]:
    """Writes JSON lines; the file appears whole at the end, and not at all where no line was written."""
    with whole_file(path, exported) as file:

        def write(row: dict[str, JSON]) -> None:
            file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
            exported.written += 1

        yield write
