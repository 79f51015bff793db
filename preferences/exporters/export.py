"""Export of preferences: data file, ties, dataset card and provenance; either all files are written or none."""

from collections.abc import Iterator
from pathlib import Path

from django.db.models import Count, Q, QuerySet

from hub.common.output_files import Outputs
from preferences.exporters.card import dataset_card
from preferences.exporters.formats.base import PreferenceFormat
from preferences.exporters.formats.registry import FORMATS
from preferences.exporters.linter import HELD_OUT, Checks, LintedVerdict, LintResult, lint
from preferences.exporters.records import preference_record
from preferences.exporters.reports import PreferenceReport
from preferences.models import Preference
from preferences.selectors import case_has_accepted_defect, current_preferences, with_related_objects
from runs.exports.protocol import ExportError, Row, export_items, json_line, write_json_lines

_FILE_SUFFIXES = {".json", ".jsonl", ".parquet", ".csv", ".txt", ".zip", ".gz"}  # a path with one of these is a file
_CHUNK = 500  # preferences with all their texts in memory at a time


def export_preferences(rows: QuerySet[Preference], out: Path, *, format: str, force: bool = False) -> PreferenceReport:
    """Write *rows* to *out*, a file if it has the suffix of the format, else a folder.

    Beside a file `name.jsonl`, the files `name.ties.jsonl`, `name.provenance.jsonl` and `name.card.md` are written. In
    a folder, their names are `data.jsonl`, `ties.jsonl`, `provenance.jsonl` and `README.md`. Raises ExportError if
    nothing is left to write, and CannotWrite if a file cannot be written or exists and *force* is not set.
    """
    export_format = FORMATS.require(format)
    single = _names_file(out, export_format)
    with Outputs(force=force) as outputs:
        folder = out.parent if single else outputs.folder(out)
        names = [f"data{export_format.suffix}", "provenance.jsonl", "ties.jsonl", "README.md"]
        places = [folder / (_beside(out, name) if single else name) for name in names]
        data, provenance, ties, card = (outputs.file(place) for place in places)
        found = lint(_read_for_linter(rows), attention_checks())
        if not export_format.decisive_only:
            found.kept = sorted([*found.kept, *found.ties])
        report = PreferenceReport(left_out=found.dropped, lint=found)
        _write_data(export_format, data, provenance, report)
        if not report.written:
            raise ExportError(_nothing_to_write(found))
        if export_format.decisive_only:
            write_json_lines((preference_record(preference) for preference in _read_preferences(found.ties)), ties)
        card.write_text(dataset_card(export_format, report, places[0].name), encoding="utf-8")
    report.files = sorted(outputs.written)
    if force:  # files of the replaced export that this one does not have, such as its ties
        for place in set(places) - set(report.files):
            place.unlink(missing_ok=True)
    return report


def _write_data(export_format: PreferenceFormat, data: Path, provenance: Path, report: PreferenceReport) -> None:
    """Write the data file, and for each of its rows a line of provenance with the number of the row from 1."""
    last: int | None = None
    with provenance.open("wb") as file:

        def trace(row: Row[Preference]) -> None:
            nonlocal last
            if row.item.pk != last:
                last = row.item.pk
                report.add_source(row.item)
            file.write(json_line({"line": report.written, **preference_record(row.item)}))

        export_items(
            export_format,
            lambda: _read_preferences(report.lint.kept, cases=export_format.needs_tools),
            data,
            report,
            on_row=trace,
        )


def _names_file(out: Path, export_format: PreferenceFormat) -> bool:
    """Return whether *out* is a data file, not a folder. Raises ExportError if it has the suffix of another format."""
    if out.suffix == export_format.suffix or str(out) == "-":
        return True
    if out.suffix.lower() in _FILE_SUFFIXES and not out.is_dir():
        raise ExportError(
            f"{out}: a file of the format {export_format.name} ends in {export_format.suffix}. Name one, or a folder."
        )
    return False


def _beside(out: Path, name: str) -> str:
    """Return the name of the file *name* of a folder if it is written beside the data file *out*."""
    if name.startswith("data"):
        return out.name
    return f"{out.stem}.card.md" if name == "README.md" else f"{out.stem}.{name}"


def _read(rows: QuerySet[Preference], *, cases: bool = False) -> Iterator[Preference]:
    """Yield *rows* in order of creation, loading them in chunks, with their cases and manifests if *cases*."""
    found = with_related_objects(rows).prefetch_related("issues__category").order_by("id")
    if cases:
        found = found.defer(None).defer("version__readme", "run__host")
    return found.iterator(chunk_size=_CHUNK)


def _read_for_linter(rows: QuerySet[Preference]) -> Iterator[Preference]:
    """Yield *rows* in order of creation with what the linter reads."""
    own = ["source", "verdict", "check_result", "reviewer", "evidence", "disputes_tests", "saw_evidence"]
    related = ["version__environment__held_out", "case__held_out", "defect__status"]
    texts = [f"{side}__{field}" for side in ("first", "second") for field in ("messages", "text")]
    found = rows.annotate(case_found_wrong=case_has_accepted_defect()).select_related(
        "first", "second", "version__environment", "case", "defect"
    )
    return found.only(*own, *related, *texts).order_by("id").iterator(chunk_size=_CHUNK)


def _read_preferences(verdicts: list[LintedVerdict], *, cases: bool = False) -> Iterator[Preference]:
    """Yield the preferences of *verdicts*, loading them in chunks."""
    for start in range(0, len(verdicts), _CHUNK):
        pks = [verdict.pk for verdict in verdicts[start : start + _CHUNK]]
        yield from _read(Preference.objects.filter(pk__in=pks), cases=cases)


def _nothing_to_write(found: LintResult) -> str:
    """Return why an export has no rows."""
    count = found.found
    if not count and not Preference.objects.exists():
        return (
            "There are no preferences yet, so nothing was written. They come from runs whose config has `judge:` or "
            "`review:`, and from reviewers at /review/."
        )
    if not count:
        return "No preference matches the filters, so nothing was written."
    if found.dropped[HELD_OUT] == count:
        return "All matching preferences are of held-out environments, which are never exported. Nothing was written."
    reasons = [f"{reason} ({number:,})" for reason, number in found.dropped.items() if number]
    ties = [f"without a winner ({len(found.ties):,})"] if found.ties else []
    subject = "The 1 preference cannot" if count == 1 else f"None of the {count:,} preferences can"
    return f"{subject} be exported: {'; '.join([*reasons, *ties])}. Nothing was written."


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
