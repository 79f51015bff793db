"""Export of preferences: data file, ties, dataset card and provenance, as files or as a .zip.

Either all files are written or none. A .zip is sent while it is made.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Self

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, F, Q, QuerySet

from hub.common.output.files import Outputs
from hub.common.output.zip_stream import ZipStream
from preferences.answers import compare_answers
from preferences.evidence import Withholding
from preferences.exporters.card import dataset_card
from preferences.exporters.formats.base import PreferenceFormat
from preferences.exporters.formats.registry import FORMATS
from preferences.exporters.linter import HELD_OUT, Checks, LintedVerdict, LinterRow, LintResult, lint
from preferences.exporters.records import preference_record
from preferences.exporters.reports import PreferenceReport
from preferences.models import Preference
from preferences.selectors import (
    PreferenceFilters,
    case_has_accepted_defect,
    current_preferences,
    filter_preferences,
    openly_disputing_preferences,
    with_related_objects,
)
from runs.exports.protocol import (
    ExportError,
    JSONObject,
    NothingToExport,
    Row,
    exported_rows,
    json_line,
    write_json_lines,
)

_FILE_SUFFIXES = {".json", ".jsonl", ".parquet", ".csv", ".txt", ".zip", ".gz"}  # a path with one of these is a file
_CHUNK = 500  # preferences with all their texts in memory at a time

Viewer = User | AnonymousUser


def export_preferences(
    rows: QuerySet[Preference],
    out: Path,
    *,
    format: str,
    filters: PreferenceFilters | None = None,
    force: bool = False,
) -> PreferenceReport:
    """Write those of *rows* that match *filters* to *out*, a file if it has the suffix of the format, else a folder.

    Rows that do not match are not written, but their verdicts can contradict those that match.

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
        export = LintedExport.of(rows, export_format, filters)
        with provenance.open("wb") as traces:
            export_format.write(export.rows(traces), data)
        export.require_rows()
        write_json_lines(export.ties(), ties)
        card.write_text(export.card(places[0].name), encoding="utf-8")
    report = export.report
    report.files = sorted(outputs.written)
    if force:  # files of the replaced export that this one does not have, such as its ties
        for place in set(places) - set(report.files):
            place.unlink(missing_ok=True)
    return report


def zip_preferences(
    rows: QuerySet[Preference], *, format: str, viewer: Viewer | None, filters: PreferenceFilters | None = None
) -> Iterator[bytes]:
    """Yield a .zip with the files that `export_preferences` writes to a folder, while its rows are made.

    What *viewer* may not read of the rows, such as reasons of scores, is left out; None may read all.

    A format that is not lines of JSON is written to disk before the first piece. Raises ExportError before the first
    piece if nothing is left to write.
    """
    export = LintedExport.of(rows, FORMATS.require(format), filters, viewer)
    name = f"data{export.format.suffix}"
    with tempfile.TemporaryDirectory(prefix="llmeval-export-") as folder, ZipStream() as archive:
        provenance = Path(folder, "provenance.jsonl")
        with provenance.open("wb") as traces:
            made = export.rows(traces)
            if export.format.has_lines:
                first = list(islice(made, 1))
                export.require_rows()
                yield from archive.add(name, (json_line(row.data) for row in chain(first, made)))
            else:
                data = Path(folder, name)
                export.format.write(made, data)
                export.require_rows()
                yield from archive.add_file(data)
        yield from archive.add_file(provenance)
        ties = export.ties()
        if first_tie := list(islice(ties, 1)):
            yield from archive.add("ties.jsonl", map(json_line, chain(first_tie, ties)))
        yield from archive.add("README.md", [export.card(name).encode()])
    yield archive.take()


@dataclass(frozen=True, slots=True)
class LintedExport:
    """Preferences that the linter lets through, as the contents of the files of an export.

    What `viewer` may not read of them is left out; None may read all.
    """

    format: PreferenceFormat
    report: PreferenceReport
    viewer: Viewer | None

    @classmethod
    def of(
        cls,
        rows: QuerySet[Preference],
        export_format: PreferenceFormat,
        filters: PreferenceFilters | None = None,
        viewer: Viewer | None = None,
    ) -> Self:
        """Lint those of *rows* that match *filters*."""
        matching, others = rows, rows.none()
        if filters and any(filters.values()):
            matching = filter_preferences(rows, **filters)
            others = rows.exclude(pk__in=matching.order_by().values("pk"))
        disputing = _read_for_linter(openly_disputing_preferences())
        found = lint(_read_for_linter(matching), attention_checks(), disputing, _read_for_linter(others))
        if not export_format.decisive_only:
            found.kept = sorted([*found.kept, *found.ties])
        return cls(export_format, PreferenceReport(left_out=found.dropped, lint=found), viewer)

    def rows(self, provenance: IO[bytes]) -> Iterator[Row[Preference]]:
        """Yield the rows of the data file, and write a line for each to *provenance*, with its number from 1."""
        last: int | None = None
        for row in exported_rows(self.format, self._read_kept, self.report):
            if row.item.pk != last:
                last = row.item.pk
                self.report.add_source(row.item)
            provenance.write(json_line({"line": self.report.written, **preference_record(row.item)}))
            yield row

    def require_rows(self) -> None:
        """Raise NothingToExport if no row was made."""
        if not self.report.written:
            raise NothingToExport(_nothing_to_write(self.report.lint, len(self._separate_ties)))

    def ties(self) -> Iterator[JSONObject]:
        """Yield the ties that the format has no place for."""
        return (preference_record(preference) for preference in self._read(self._separate_ties))

    def card(self, data_file: str) -> str:
        """Return the dataset card, once all rows are made."""
        return dataset_card(self.format, self.report, data_file)

    @property
    def _separate_ties(self) -> list[LintedVerdict]:
        return self.report.lint.ties if self.format.decisive_only else []

    def _read_kept(self) -> Iterator[Preference]:
        return self._read(self.report.lint.kept, cases=self.format.needs_tools)

    def _read(self, verdicts: list[LintedVerdict], *, cases: bool = False) -> Iterator[Preference]:
        found = _read_preferences(verdicts, cases=cases)
        return found if self.viewer is None else map(Withholding(self.viewer), found)


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


def _read_for_linter(rows: QuerySet[Preference]) -> Iterator[LinterRow]:
    """Yield what the linter reads of *rows*, in order of creation."""
    related = {
        "environment_held_out": F("version__environment__held_out"),
        "case_held_out": F("case__held_out"),
        "winner": F("evidence__winner"),
        "defect_status": F("defect__status"),
        "tests_found_wrong": case_has_accepted_defect(),
    }
    columns = rows.annotate(**related).order_by("id").values_list(*LinterRow._fields)
    for values in columns.iterator(chunk_size=_CHUNK):
        row = LinterRow(*values)
        yield row if row.first_digest else _with_answers_compared(row)


def _with_answers_compared(row: LinterRow) -> LinterRow:
    """Return *row* with its answers compared now, because a transcript could not be read when they were compared."""
    preference = Preference.objects.select_related("first", "second").get(pk=row.pk)
    return row._replace(**compare_answers(preference.first, preference.second))


def _read_preferences(verdicts: list[LintedVerdict], *, cases: bool = False) -> Iterator[Preference]:
    """Yield the preferences of *verdicts*, loading them in chunks."""
    for start in range(0, len(verdicts), _CHUNK):
        pks = [verdict.pk for verdict in verdicts[start : start + _CHUNK]]
        yield from _read(Preference.objects.filter(pk__in=pks), cases=cases)


def _nothing_to_write(found: LintResult, separate_ties: int) -> str:
    """Return why an export has no rows. separate_ties: those that the format has no place for."""
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
    ties = [f"without a winner ({separate_ties:,})"] if separate_ties else []
    subject = "The 1 preference cannot" if count == 1 else f"None of the {count:,} preferences can"
    return f"{subject} be exported: {'; '.join([*reasons, *ties])}. Nothing was written."


def attention_checks() -> dict[int, Checks]:
    """Return reviewer id -> failed and total attention checks, without those that rest on tests found wrong.

    A check counts once, even if its decision was undone.
    """
    failed = Count("pk", filter=Q(check_result=Preference.Check.FAILED))
    rows = (
        current_preferences()
        .exclude(check_result="")
        .exclude(reviewer=None)
        .exclude(case_has_accepted_defect())
        .order_by()
        .values_list("reviewer")
        .annotate(n=Count("pk"), failed=failed)
    )
    return {reviewer: (bad, n) for reviewer, n, bad in rows}
