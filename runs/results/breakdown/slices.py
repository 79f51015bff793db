"""Accuracy of each model on groups of cases: one group for each value of a metadata key, or for each tag."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from hub.models import Case
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.results.counting import case_clusters, clusters_of, quarantined_cases
from runs.results.statistics.mean_intervals import Estimate, mean_estimate

MAX_VALUES = 60  # of one key; keys with more values, such as ids, are not offered
_LONGEST = 80  # characters of a value
CaseValues = dict[str, dict[str, list[int]]]  # key -> value -> case ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Cases with the same value of a key, and the estimate of each model in the order of the run."""

    value: str
    cases: int
    estimates: list[Estimate]


def case_values(run_environment: RunEnvironment) -> CaseValues:
    """Return the evaluated cases by key and value of their metadata; a list has several values, as tags have.

    Only keys that group the cases are returned: those with at least two values, or one that not all cases have.
    """
    cases = Case.objects.filter(version_id=run_environment.version_id).order_by("position")
    chosen = None if run_environment.case_positions is None else set(run_environment.case_positions)
    if chosen is None:
        cases = cases.filter(position__lt=run_environment.case_count)
    found: CaseValues = {}
    too_many: set[str] = set()
    count = 0
    rows = cases.values_list("pk", "position", "data__metadata")
    for pk, position, metadata in rows.iterator(chunk_size=2000):
        if chosen is not None and position not in chosen:
            continue
        count += 1
        for key, value in (metadata if isinstance(metadata, dict) else {}).items():
            if key in too_many:
                continue
            values = found.setdefault(key, {})
            for text in _texts(value):
                values.setdefault(text, []).append(pk)
            if len(values) > MAX_VALUES:
                too_many.add(key)
                del found[key]
    return {key: values for key, values in found.items() if values and (len(values) > 1 or _size(values) < count)}


def _size(values: dict[str, list[int]]) -> int:
    return sum(len(cases) for cases in values.values())


def _texts(value: object) -> list[str]:
    """Return a value of metadata as texts: each item of a list, nothing for objects and for long texts."""
    items = value if isinstance(value, list) else [value]
    texts = ["yes" if item is True else "no" if item is False else str(item) for item in items if _is_plain(item)]
    return [text for text in dict.fromkeys(texts) if text]


def _is_plain(item: object) -> bool:
    return isinstance(item, (bool, int, float)) or (isinstance(item, str) and len(item) <= _LONGEST)


def slice_results(
    run: Run, run_environment: RunEnvironment, models: Sequence[RunModel], values: dict[str, list[int]]
) -> list[Slice]:
    """Return the accuracy of *models* for each of *values*, with the intervals of accuracies."""
    quarantined = quarantined_cases(run, run_environment)
    clusters = case_clusters(run_environment)
    means = _case_means(run_environment)
    slices = []
    for value, cases in values.items():
        counted = [case for case in cases if case not in quarantined]
        estimates = []
        for model in models:
            scored = [case for case in counted if case in means[model.pk]]
            groups = clusters_of(scored, clusters)
            estimates.append(mean_estimate([means[model.pk][case] for case in scored], groups))
        slices.append(Slice(value=value, cases=len(counted), estimates=estimates))
    return slices


def _case_means(run_environment: RunEnvironment) -> dict[int, dict[int, float]]:
    """Return the share of scored attempts that passed, by model and case."""
    scored = Response.objects.filter(
        run_environment=run_environment, status__in=(Response.Status.PASSED, Response.Status.FAILED)
    ).order_by()
    passed = Count("id", filter=Q(status=Response.Status.PASSED))
    rows = scored.values_list("run_model_id", "case_id").annotate(passed=passed, scored=Count("id"))
    means: dict[int, dict[int, float]] = defaultdict(dict)
    for model, case, passes, attempts in rows.iterator(chunk_size=2000):
        means[model][case] = passes / attempts
    return means


def label_counts(values: CaseValues) -> dict[str, int]:
    """Return the number of values of each key, the keys with the fewest values first."""
    counts = Counter({key: len(found) for key, found in values.items()})
    return dict(sorted(counts.items(), key=lambda item: (item[1], item[0])))
