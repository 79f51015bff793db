"""Preparation of a bundle's rows as cases whose templates render; used by import, validation and the gates."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from hub.common.problems import Problem
from hub.common.wording import end_sentence
from hub.datasets.disk_index import DiskIndex
from hub.datasets.mapping import CaseMapper
from hub.datasets.row_types import DatasetError, Opener, Row
from hub.datasets.rows import read_rows
from hub.environments.compiled import CaseError, CompiledEnvironment
from hub.manifest.problems import MANIFEST, BundleError
from hub.manifest.schema import Manifest
from hub.protocols.cases import CaseData
from hub.templating import templates


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case with its digests; `position` counts from 0, `file` and `line` locate its row."""

    position: int
    case: CaseData
    input_digest: str
    scoring_digest: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class RepeatedId(Problem):
    """A row with the id of the row on `earlier_line` of the same file, which the remedy names."""

    earlier_line: int = field(kw_only=True)

    @classmethod
    def of(cls, case: CaseData, file: str, line: int, earlier_line: int) -> Self:
        message = f"the id {case.id!r} is already used."
        remedy = _repeated_id_remedy(f"line {earlier_line}")
        return cls(message, "dataset.fields.id", file=file, line=line, remedy=remedy, earlier_line=earlier_line)

    def moved(self, file: str, line: int, earlier_file: str, earlier_line: int) -> Problem:
        """Return this problem for rows that come from other places, even from different files."""
        earlier = f"line {earlier_line}" if earlier_file == file else f"line {earlier_line} of {earlier_file}"
        return Problem(self.message, self.path, file=file, line=line, remedy=_repeated_id_remedy(earlier))


def _repeated_id_remedy(earlier: str) -> str:
    return f"The row on {earlier} has it. Give each case an id of its own."


def prepared_cases(
    manifest: Manifest, environment: CompiledEnvironment | None, open_file: Opener, *, null_ids: bool = True
) -> Iterator[PreparedCase | Problem]:
    """Yield every case of the bundle in order, or a Problem in place of a wrong one.

    *environment* is None if it does not compile. Rows are then only mapped, and the digests are empty.
    null_ids: whether the number of a row replaces an id that is null, as in versions that are stored already.
    """
    mapper = CaseMapper(manifest.dataset.fields, open_file, null_ids=null_ids)
    position = number = left_out = 0
    with DiskIndex() as ids:
        try:
            for number, (file, line, row) in enumerate(read_rows(manifest.dataset, open_file), 1):
                try:
                    if isinstance(row, DatasetError):
                        raise row
                    if not _is_included(manifest.dataset.where, row, file, line):
                        left_out += 1
                        continue
                    case = mapper.case(row, file=file, line=line, position=number)
                    if (earlier := ids.add(case.id, str(line))) is not None:
                        raise BundleError(RepeatedId.of(case, file, line, int(earlier)))
                    yield PreparedCase(position, case, *_digests(environment, case, file, line), file, line)
                    position += 1
                except BundleError as error:
                    yield from error.problems
        except BundleError as error:  # a file that is missing or cannot be read further
            yield from error.problems
            return
    if number == 0:
        yield Problem(file=manifest.dataset.path or MANIFEST, message="the dataset has no rows.")
    elif left_out == number:
        yield Problem("every row is left out, so there are no cases.", "dataset.where", file=MANIFEST)


def _digests(environment: CompiledEnvironment | None, case: CaseData, file: str, line: int) -> tuple[str, str]:
    """Return the digests of the input and of the scoring of *case*. Raises BundleError if it does not render."""
    if environment is None:
        return "", ""
    try:
        rendered = environment.rendered(case)
        rendered.check()
        return rendered.input_digest(), rendered.scoring_digest()
    except CaseError as error:
        message = end_sentence(error.message)
        if error.in_manifest:
            raise BundleError(Problem(message, error.where, file=MANIFEST)) from None
        raise BundleError(Problem(message, error.where, file=file, line=line)) from None


def _is_included(where: str | None, row: Row, file: str, line: int) -> bool:
    if where is None:
        return True
    try:
        value = templates.render(where, {**row, "row": row})
    except templates.RenderError as error:
        message = end_sentence(str(error))
        raise BundleError(Problem(message, "dataset.where", file=file, line=line)) from None
    return templates.truth(value)
