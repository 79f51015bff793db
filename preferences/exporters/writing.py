"""Write an export: data file, ties, dataset card and provenance, either all of them or none."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import Count, Q, QuerySet

from hub.common.output_files import Outputs
from preferences.exporters.base import CannotHold, Exporter, ExportError, Row, everything
from preferences.exporters.linter import HELD_OUT, Checks, Claim, Linted, lint
from preferences.exporters.registry import FORMATS
from preferences.models import Preference
from preferences.selectors import current_preferences, with_related_objects

_OTHERS = {".json", ".jsonl", ".parquet", ".csv", ".txt", ".zip", ".gz"}  # no folder is named so on purpose


_CHUNK = 500  # preferences with all their texts in memory at a time


@dataclass(slots=True)
class Written:
    """Result of an export: number of rows, their runs and environments, the report of the linter, and the files."""

    rows: int
    linted: Linted
    files: list[Path] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    environments: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)

    @property
    def report(self) -> dict[str, Any]:
        return {"rows": self.rows, **self.linted.to_json()}

    def about(self, preference: Preference) -> None:
        """Record the run and environment of *preference*, whose rows are written."""
        self.sources[preference.get_source_display()] += 1
        self.environments.add(f"{preference.version} ({preference.version.environment.license or 'no license given'})")
        self.models |= {preference.first.run_model.label, preference.second.run_model.label}
        self.runs.add(preference.run_id)


def export_preferences(rows: QuerySet[Preference], out: Path, *, format: str, force: bool = False) -> Written:
    """Write *rows* to *out*, a file if it has the suffix of the format, else a folder.

    Beside a file `name.jsonl` come `name.ties.jsonl`, `name.provenance.jsonl` and `name.card.md`; in a folder the same
    are `data`, `ties`, `provenance` and `README.md`. Raises ExportError if nothing is left to write, and
    hub.outputs.CannotWrite if the files cannot be written, or would replace others without *force*.
    """
    exporter = FORMATS.require(format)
    single = _names_file(out, exporter)
    with Outputs(force=force) as outputs:
        folder = out.parent if single else outputs.folder(out)
        places = {name: folder / (_beside(out, name) if single else name) for name in _names(exporter)}
        data, provenance, ties, about = (outputs.file(place) for place in places.values())
        linted = lint(_read(rows), attention_checks())
        if not exporter.decisive_only:
            linted.kept = sorted([*linted.kept, *linted.ties])
        written = Written(rows=0, linted=linted)
        cannot: dict[int, str] = {}
        settled = exporter.settled(lambda: _rows(exporter, linted.kept, cannot), linted.dropped)
        with _lines_of(provenance) as write_line:
            exporter.write(_traced(settled, written, write_line), data)
        linted.dropped.update(cannot.values())
        if not written.rows:
            raise ExportError(_nothing(linted))
        if exporter.decisive_only and linted.ties:
            with _lines_of(ties) as write_line:
                for preference in _again(linted.ties):
                    write_line(everything(preference))
        about.write_text(card(exporter, written, next(iter(places.values())).name), encoding="utf-8")
    written.files = sorted(outputs.written)
    if force:  # ties of an export that is replaced are not this one's
        for place in set(places.values()) - set(written.files):
            place.unlink(missing_ok=True)
    return written


def _names(exporter: Exporter) -> list[str]:
    return [f"data{exporter.suffix}", "provenance.jsonl", "ties.jsonl", "README.md"]


def _names_file(out: Path, exporter: Exporter) -> bool:
    """Return whether *out* is a data file, not a folder. Raises ExportError if it has the suffix of another format."""
    if out.suffix == exporter.suffix or str(out) == "-":
        return True
    if out.suffix.lower() in _OTHERS and not out.is_dir():
        raise ExportError(f"{out}: {exporter.name} is written as {exporter.suffix}; name such a file, or a folder.")
    return False


def _beside(out: Path, name: str) -> str:
    if name.startswith("data"):
        return out.name
    return f"{out.stem}.card.md" if name == "README.md" else f"{out.stem}.{name}"


def _read(rows: QuerySet[Preference], *, cases: bool = False) -> Iterator[Preference]:
    """Yield *rows* in order of creation, loading them in chunks, with their cases and manifests if *cases*."""
    found = with_related_objects(rows).prefetch_related("issues__category").order_by("id")
    if cases:
        found = found.defer(None).defer("version__readme", "run__host")
    return found.iterator(chunk_size=_CHUNK)


def _again(claims: list[Claim], *, cases: bool = False) -> Iterator[Preference]:
    for at in range(0, len(claims), _CHUNK):
        pks = [claim.pk for claim in claims[at : at + _CHUNK]]
        yield from _read(Preference.objects.filter(pk__in=pks), cases=cases)


def _rows(exporter: Exporter, claims: list[Claim], cannot: dict[int, str]) -> Iterator[Row]:
    """Yield the rows of the format. Preferences that it cannot represent are added to *cannot* with the reason."""
    for preference in _again(claims, cases=exporter.names_tools):
        try:
            yield from [Row(preference, data) for data in exporter.rows(preference)]
        except CannotHold as why:
            cannot[preference.pk] = str(why)


def _traced(rows: Iterator[Row], written: Written, write_line: Callable[[Any], None]) -> Iterator[Row]:
    """Yield *rows*, writing a line of provenance for each, with its line number in the data file from 1."""
    last = None
    for row in rows:
        written.rows += 1
        if row.preference.pk != last:
            last = row.preference.pk
            written.about(row.preference)
        write_line({"line": written.rows, **everything(row.preference)})
        yield row


def _nothing(linted: Linted) -> str:
    found = linted.found
    if not found and not Preference.objects.exists():
        return (
            "There are no preferences yet; nothing was written. They come from runs whose config has `judge:` or "
            "`review:`, and from people at /review/."
        )
    if not found:
        return "No preference matches; nothing was written."
    if linted.dropped[HELD_OUT] == found:
        return "All of these are of held-out environments, which training data never holds; nothing was written."
    reasons = [f"{why} ({count:,})" for why, count in linted.dropped.items() if count]
    ties = [f"without a winner ({len(linted.ties):,})"] if linted.ties else []
    these = "The 1 preference" if found == 1 else f"None of the {found:,} preferences"
    cannot = "cannot" if found == 1 else "can"
    return f"{these} {cannot} be exported: {'; '.join([*reasons, *ties])}. Nothing was written."


@contextmanager
def _lines_of(path: Path) -> Iterator[Callable[[Any], None]]:
    """Yield a function that writes one JSON document per line."""
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        yield lambda row: print(json.dumps(row, ensure_ascii=False), file=file)


def attention_checks() -> dict[int, Checks]:
    """Return reviewer id -> failed and total attention checks. A check counts once, even if its decision was undone."""
    failed = Count("pk", filter=Q(check_result=Preference.Check.FAILED))
    rows = (
        current_preferences()
        .exclude(check_result="")
        .exclude(reviewer=None)
        .order_by()
        .values_list("reviewer")
        .annotate(n=Count("pk"), failed=failed)
    )
    return {reviewer: (bad, n) for reviewer, n, bad in rows}


def card(exporter: Exporter, written: Written, data: str) -> str:
    """Return the dataset card: contents, provenance, preferences left out, and warnings."""
    linted = written.linted
    report = linted.to_json()
    balance = "-" if report["first_chosen"] is None else f"{100 * report['first_chosen']:.1f} %"
    lengths = "-" if report["length_correlation"] is None else f"{report['length_correlation']:+.2f}"
    lines = [
        "---",
        "configs:",
        "  - config_name: default",
        f"    data_files: {data}",
        "tags: [preference, llm-eval]",
        "---",
        "",
        "# Preferences",
        "",
        f"{written.rows:,} rows in the format `{exporter.name}`: {exporter.summary}.",
        "",
        "## Where they come from",
        "",
        f"- Judged by: {', '.join(f'{name} ({count:,})' for name, count in sorted(written.sources.items()))}",
        f"- Models compared: {', '.join(sorted(written.models))}",
        *(f"- Environment: {name}" for name in sorted(written.environments)),
        f"- Runs: {', '.join(map(str, sorted(written.runs)))}",
        "",
        "Every row can be traced by the provenance file: line, preference, responses, run, config and digests.",
        "",
        "## What to beware of",
        "",
        f"- The pair's first response was chosen in {balance} of the pairs.",
        f"- Correlation of being longer with being chosen: {lengths}.",
        *(f"- Left out {count:,}: {why}." for why, count in linted.dropped.items() if count),
        *(
            [f"- Without a winner, in the file of ties: {len(linted.ties):,}."]
            if exporter.decisive_only and linted.ties
            else []
        ),
        "",
    ]
    return "\n".join(lines)
