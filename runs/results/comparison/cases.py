"""Cases of two cells that can be compared one by one: same id, same input digest, same scoring digest.

Cells are read as columns, and cases are named by their row there: with an object for each of 6,250 cases of two models,
Python's garbage collector took half of the time of a comparison.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hub.models import Case
from runs.models import Run, RunEnvironment, RunModel
from runs.results.case_results import CaseResults
from runs.results.stored import get_cases

# Reasons why a case of one side cannot be compared, as reports show them.
ONLY_A, ONLY_B = "only in A", "only in B"
OTHER_INPUT = "other input"
OTHER_SCORING = "other scoring"
UNSCORED = "not scored by both"
QUARANTINED = "quarantined"


class VersionCases:
    """Ids and digests of the cases of one environment version, each by the key of the row."""

    def __init__(self, version: int) -> None:
        self.ids: dict[int, str] = {}
        self.input_digests: dict[int, str] = {}
        self.scoring_digests: dict[int, str] = {}
        columns = ("pk", "external_id", "input_digest", "scoring_digest")
        rows = Case.objects.filter(version_id=version).order_by().values_list(*columns)
        for pk, name, input_digest, scoring_digest in rows.iterator(chunk_size=2000):
            self.ids[pk] = name
            self.input_digests[pk] = input_digest
            self.scoring_digests[pk] = scoring_digest


class Side:
    """Results of the cases of one cell, and the names of its cases."""

    def __init__(self, version: int, cases: CaseResults, loader: "CaseLoader") -> None:
        self.version = version
        self.cases = cases
        self.means = cases.means()
        self.quarantined = frozenset(cases.quarantined)
        self._loader = loader

    @property
    def names(self) -> VersionCases:
        return self._loader.names(self.version)


class CaseLoader:
    """Cases of cells and of versions, each loaded once."""

    def __init__(self) -> None:
        self._sides: dict[tuple[int, int], Side] = {}
        self._names: dict[int, VersionCases] = {}

    def load(self, run: Run, run_environments: Sequence[RunEnvironment], models: Sequence[RunModel]) -> None:
        """Read several cells of *run* with one query."""
        missing = [
            model for model in models if any((item.pk, model.pk) not in self._sides for item in run_environments)
        ]
        if not missing:
            return
        versions = {item.pk: item.version_id for item in run_environments}
        for (run_environment, model), cases in get_cases(run, run_environments, missing).items():
            self._sides[run_environment, model] = Side(versions[run_environment], cases, self)

    def side(self, run: Run, run_environment: RunEnvironment, model: RunModel) -> Side:
        self.load(run, [run_environment], [model])
        return self._sides[run_environment.pk, model.pk]

    def names(self, version: int) -> VersionCases:
        if version not in self._names:
            self._names[version] = VersionCases(version)
        return self._names[version]


class Match(NamedTuple):
    """Case of A at row *a* and case of B with the same id at row *b*, and what is not the same on both sides."""

    a: int
    b: int
    other_input: bool = False
    other_scoring: bool = False


def match_cases(side_a: Side, side_b: Side) -> Iterator[Match]:
    """Yield the cases that have a response on both sides, in the order of A."""
    if side_a.version == side_b.version:
        rows = {pk: row for row, pk in enumerate(side_b.cases.case)}
        for a, pk in enumerate(side_a.cases.case):
            if (b := rows.get(pk)) is not None:
                yield Match(a, b)
        return
    names_a, names_b = side_a.names, side_b.names
    rows_by_id = {names_b.ids[pk]: row for row, pk in enumerate(side_b.cases.case)}
    for a, pk in enumerate(side_a.cases.case):
        if (b := rows_by_id.get(names_a.ids[pk])) is not None:
            other = side_b.cases.case[b]
            yield Match(
                a,
                b,
                names_a.input_digests[pk] != names_b.input_digests[other],
                names_a.scoring_digests[pk] != names_b.scoring_digests[other],
            )


def reason_not_compared(side_a: Side, side_b: Side, match: Match) -> str:
    """Return why two cases with the same id cannot be compared, or "" if they can."""
    if match.other_input:
        return OTHER_INPUT
    if match.other_scoring:
        return OTHER_SCORING
    if side_a.cases.case[match.a] in side_a.quarantined or side_b.cases.case[match.b] in side_b.quarantined:
        return QUARANTINED
    return UNSCORED if side_a.means[match.a] is None or side_b.means[match.b] is None else ""
