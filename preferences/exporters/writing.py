"""Writing an export: the data file, ties, a dataset card and provenance, all of them or none."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import Count, Q, QuerySet

from hub.outputs import Outputs
from preferences.exporters.base import CannotHold, Exporter, ExportError, Row, everything
from preferences.exporters.linter import HELD_OUT, Linted, lint
from preferences.exporters.registry import FORMATS
from preferences.models import Preference
from preferences.selectors import with_everything

_OTHERS = {".json", ".jsonl", ".parquet", ".csv", ".txt", ".zip", ".gz"}  # no folder is named so on purpose


@dataclass(slots=True)
class Written:
    """What came of an export: rows in the data file, the linter's report, and the files."""

    rows: int
    linted: Linted
    files: list[Path] = field(default_factory=list)

    @property
    def report(self) -> dict[str, Any]:
        return {"rows": self.rows, **self.linted.to_json()}


def preferences_export(rows: QuerySet[Preference], out: Path, *, format: str, force: bool = False) -> Written:
    """Write *rows* to *out*: a file where it has the format's suffix, else a folder of files.

    Beside a file `name.jsonl` come `name.ties.jsonl`, `name.provenance.jsonl` and `name.card.md`; in a folder the same
    are `data`, `ties`, `provenance` and `README.md`. Raises ExportError where nothing is left to write, and
    hub.outputs.CannotWrite where the files cannot be written, or would replace others without *force*.
    """
    exporter = FORMATS.get(format)
    if exporter is None:
        raise ExportError(f"There is no format {format!r}; known are {', '.join(FORMATS)}.")
    single = _names_file(out, exporter)
    with Outputs(force=force) as outputs:
        folder = out.parent if single else outputs.folder(out)
        places = {name: folder / (_beside(out, name) if single else name) for name in _names(exporter)}
        data, provenance, ties, about = (outputs.file(place) for place in places.values())
        found = list(with_everything(rows).prefetch_related("issues__category").order_by("id"))
        linted = lint(found, false_accepts())
        if not exporter.decisive_only:
            linted.kept = sorted([*linted.kept, *linted.ties], key=lambda p: p.pk)
        lines = exporter.settled(list(_lines(exporter, linted)), linted.dropped)
        if not lines:
            raise ExportError(_nothing(found, linted))
        written = Written(rows=len(lines), linted=linted)
        exporter.write(lines, data)
        _write_lines(provenance, _provenance(lines, linted))
        if exporter.decisive_only and linted.ties:
            _write_lines(ties, [everything(p) for p in linted.ties])
        about.write_text(card(exporter, written, next(iter(places.values())).name), encoding="utf-8")
    written.files = sorted(outputs.written)
    if force:  # ties of an export that is replaced are not this one's
        for place in set(places.values()) - set(written.files):
            place.unlink(missing_ok=True)
    return written


def _names(exporter: Exporter) -> list[str]:
    return [f"data{exporter.suffix}", "provenance.jsonl", "ties.jsonl", "README.md"]


def _names_file(out: Path, exporter: Exporter) -> bool:
    """Whether *out* names the data file, not a folder. Raises ExportError for another format's file."""
    if out.suffix == exporter.suffix or str(out) == "-":
        return True
    if out.suffix.lower() in _OTHERS and not out.is_dir():
        raise ExportError(f"{out}: {exporter.name} is written as {exporter.suffix}; name such a file, or a folder.")
    return False


def _beside(out: Path, name: str) -> str:
    if name.startswith("data"):
        return out.name
    return f"{out.stem}.card.md" if name == "README.md" else f"{out.stem}.{name}"


def _lines(exporter: Exporter, linted: Linted) -> Iterator[Row]:
    for preference in linted.kept:
        try:
            yield from [Row(preference.pk, data) for data in exporter.rows(preference)]
        except CannotHold as why:
            linted.dropped[str(why)] += 1


def _nothing(found: list[Preference], linted: Linted) -> str:
    if not found and not Preference.objects.exists():
        return (
            "There are no preferences yet; nothing was written. They come from runs whose config has `judge:` or "
            "`review:`, and from people at /review/."
        )
    if not found:
        return "No preference matches; nothing was written."
    if linted.dropped[HELD_OUT] == len(found):
        return "All of these are of held-out environments, which training data never holds; nothing was written."
    reasons = [f"{why} ({count:,})" for why, count in linted.dropped.items() if count]
    ties = [f"without a winner ({len(linted.ties):,})"] if linted.ties else []
    these = "The 1 preference" if len(found) == 1 else f"None of the {len(found):,} preferences"
    cannot = "cannot" if len(found) == 1 else "can"
    return f"{these} {cannot} be exported: {'; '.join([*reasons, *ties])}. Nothing was written."


def _provenance(lines: list[Row], linted: Linted) -> Iterator[dict[str, Any]]:
    """For each line of the data file its number, from 1, and where it comes from."""
    known = {preference.pk: preference for preference in linted.kept}
    for number, line in enumerate(lines, 1):
        yield {"line": number, **everything(known[line.preference])}


def _write_lines(path: Path, rows: Any) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def false_accepts() -> dict[int, float]:
    """Reviewer id -> the share of their attention checks in which they accepted the wrong suggestion."""
    failed = Count("pk", filter=Q(check_result=Preference.Check.FAILED))
    rows = (
        Preference.objects.exclude(check_result="")
        .exclude(reviewer=None)
        .order_by()
        .values_list("reviewer")
        .annotate(n=Count("pk"), failed=failed)
    )
    return {reviewer: bad / n for reviewer, n, bad in rows}


def card(exporter: Exporter, written: Written, data: str) -> str:
    """The dataset card: what is in it, where it comes from, what was left out, what to beware of."""
    linted = written.linted
    report = linted.to_json()
    environments = sorted({f"{p.version} ({p.version.environment.license or 'no license given'})" for p in linted.kept})
    models = sorted({label for p in linted.kept for label in (p.first.run_model.label, p.second.run_model.label)})
    sources: dict[str, int] = {}
    for preference in linted.kept:
        sources[preference.get_source_display()] = sources.get(preference.get_source_display(), 0) + 1
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
        f"- Judged by: {', '.join(f'{name} ({count:,})' for name, count in sorted(sources.items()))}",
        f"- Models compared: {', '.join(models)}",
        *(f"- Environment: {name}" for name in environments),
        f"- Runs: {', '.join(str(pk) for pk in sorted({p.run_id for p in linted.kept}))}",
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
