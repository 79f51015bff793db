"""Matrices of the differences between all models on one environment, for comparisons of more than two models."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.reports import formats
from runs.reports.comparison.rows import ComparedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """Difference of the row's model minus the column's. `state` is better, worse or level."""

    text: str
    interval: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonMatrix:
    """Differences between all models on one environment; a cell is None on the diagonal and for pairs not compared."""

    slug: str
    names: list[str]
    rows: list[tuple[str, list[MatrixCell | None]]]


def comparison_matrices(rows: Sequence[ComparedRow]) -> list[ComparisonMatrix]:
    """Return a matrix for each environment of *rows*."""
    matrices = []
    for slug in dict.fromkeys(row.item.slug for row in rows):
        of_slug = [row for row in rows if row.item.slug == slug]
        names = list(dict.fromkeys(name for row in of_slug for name in (row.name_a, row.name_b)))
        cells: dict[tuple[str, str], MatrixCell] = {}
        for row in of_slug:
            cells[row.name_a, row.name_b] = _matrix_cell(row, 1)
            cells[row.name_b, row.name_a] = _matrix_cell(row, -1)
        table = [(a, [cells.get((a, b)) for b in names]) for a in names]
        matrices.append(ComparisonMatrix(slug=slug, names=names, rows=table))
    return matrices


def _matrix_cell(row: ComparedRow, sign: int) -> MatrixCell:
    paired = row.item.paired
    if paired.difference is None:
        return MatrixCell(text=formats.UNDEFINED, interval="", state="level")
    difference = sign * paired.difference
    interval = formats.UNDEFINED
    if paired.low is not None and paired.high is not None:
        interval = formats.interval(*sorted((sign * paired.low, sign * paired.high)))
    significant = row.is_significant
    state = "level" if not significant else "better" if difference > 0 else "worse"
    return MatrixCell(text=formats.points(difference), interval=interval, state=state)
