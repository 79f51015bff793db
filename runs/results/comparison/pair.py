"""Comparison of two models on the cases that both answered, in one run or two: differences, tests, flips.

Cases that cannot be compared are counted by reason.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hub.common.errors import UserError
from hub.protocols.messages import JSON
from runs.models import Run, RunEnvironment, RunModel
from runs.results.comparison.cases import ONLY_A, ONLY_B, CaseLoader, Side, match_cases, reason_not_compared
from runs.results.comparison.notes import cache_notes, environment_notes, model_notes, run_notes
from runs.results.counting import clusters_of
from runs.results.statistics.paired import PairedDifference, holm, paired_difference
from runs.results.statistics.resampling import PairedRatio, paired_ratio
from runs.selectors import models_under_test


class ComparisonError(UserError):
    """The runs or models cannot be compared; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentComparison:
    """One environment under two models. Flips are case ids; `p_adjusted` is Holm's over everything compared."""

    slug: str
    version_a: str
    version_b: str
    paired: PairedDifference
    cost: PairedRatio
    latency: PairedRatio
    p_adjusted: float | None
    better_a: list[str]
    better_b: list[str]
    left_out: dict[str, int]
    notes: list[str]

    def to_json(self) -> dict[str, JSON]:
        """Return the comparison as an entry of `compare --json`."""
        paired = self.paired
        return {
            "environment": self.slug,
            "version_a": self.version_a,
            "version_b": self.version_b,
            "cases": paired.n,
            "accuracy_a": paired.mean_a,
            "accuracy_b": paired.mean_b,
            "difference": paired.difference,
            "ci95": None if paired.low is None else [paired.low, paired.high],
            "ci_method": paired.method,
            "ci_note": paired.note,
            "effective_n": paired.effective_n,
            "test": paired.test,
            "p_value": paired.p_value,
            "p_adjusted": self.p_adjusted,
            "minimum_detectable_effect": paired.mde,
            "cost_usd": _ratio_json(self.cost),
            "latency_ms": _ratio_json(self.latency),
            "better_a": self.better_a,
            "better_b": self.better_b,
            "left_out": self.left_out,
            "notes": self.notes,
        }


def _ratio_json(found: PairedRatio) -> dict[str, JSON]:
    return {
        "cases": found.n,
        "a": found.mean_a,
        "b": found.mean_b,
        "difference": found.difference,
        "difference_ci95": None if found.low is None else [found.low, found.high],
        "ratio": found.ratio,
        "ratio_ci95": None if found.ratio_low is None else [found.ratio_low, found.ratio_high],
        "note": found.note,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """Comparison of model *a* of run A with model *b* of run B, on every environment of both runs."""

    model_a: str
    model_b: str
    environments: list[EnvironmentComparison]

    def to_json(self) -> dict[str, JSON]:
        """Return the pair of models with each environment, for `compare --json`."""
        return {
            "model_a": self.model_a,
            "model_b": self.model_b,
            "environments": [item.to_json() for item in self.environments],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Differences are A - B, of accuracies from 0 to 1. `notes` are about the runs, not about one environment."""

    run_a: Run
    run_b: Run
    models: list[ModelComparison]
    notes: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """Return the number of pairs of results that were compared."""
        return sum(item.paired.n for pair in self.models for item in pair.environments)

    def to_json(self) -> dict[str, JSON]:
        """Return the document of `compare --json`."""
        return {
            "a": _run_json(self.run_a),
            "b": _run_json(self.run_b),
            "models": [item.to_json() for item in self.models],
            "notes": self.notes,
        }


def _run_json(run: Run) -> dict[str, JSON]:
    return {"run": run.pk, "name": run.name, "status": run.status, "config_hash": run.config_hash}


def compare(
    run_a: Run,
    run_b: Run,
    *,
    model_a: str | None = None,
    model_b: str | None = None,
    loader: CaseLoader | None = None,
) -> Comparison:
    """Compare two runs, or two models of one run. Raises ComparisonError.

    Models with the same label are paired. If there are none, or names are given, one model of each run is compared.
    *loader* keeps the cases for other comparisons.
    """
    loader = loader or CaseLoader()
    pairs = _model_pairs(run_a, run_b, model_a, model_b)
    environments_a, environments_b = _run_environments(run_a), _run_environments(run_b)
    shared = [slug for slug in environments_a if slug in environments_b]
    if not shared:
        raise ComparisonError(
            f"The runs have no environment in common: run {run_a.pk} has {', '.join(environments_a)}, "
            f"run {run_b.pk} has {', '.join(environments_b)}."
        )
    loader.load(run_a, [environments_a[slug] for slug in shared], [a for a, _ in pairs])
    loader.load(run_b, [environments_b[slug] for slug in shared], [b for _, b in pairs])
    models = []
    for a, b in pairs:
        found = [
            _compare_environment(
                environments_a[slug],
                environments_b[slug],
                loader.side(run_a, environments_a[slug], a),
                loader.side(run_b, environments_b[slug], b),
            )
            for slug in shared
        ]
        models.append(ModelComparison(model_a=a.label, model_b=b.label, environments=found))
    notes = run_notes(run_a, run_b, environments_a, environments_b)
    if run_a.pk != run_b.pk and not model_a and not model_b and all(a.label == b.label for a, b in pairs):
        notes += model_notes(_models(run_a), _models(run_b))
    return adjust_all([Comparison(run_a=run_a, run_b=run_b, models=models, notes=notes)])[0]


def _model_pairs(run_a: Run, run_b: Run, model_a: str | None, model_b: str | None) -> list[tuple[RunModel, RunModel]]:
    models_a, models_b = _models(run_a), _models(run_b)
    if run_a.pk == run_b.pk:
        if not model_a and not model_b and len(models_a) == 2:
            model_a, model_b = models_a
        if len(models_a) == 1:
            only = ", ".join(models_a)
            raise ComparisonError(f"Run {run_a.pk} has one model, {only}; compare it with another run.", "b")
        for path, label in (("model_a", model_a), ("model_b", model_b)):
            if label:
                _named(run_a, models_a, label, path)
        if not model_a or not model_b or model_a == model_b:
            raise ComparisonError(f"Within one run, choose two different models, of {', '.join(models_a)}.", "model_a")
    if model_a or model_b:
        a = _named(run_a, models_a, model_a or model_b, "model_a" if model_a else "model_b")
        b = _named(run_b, models_b, model_b or model_a, "model_b" if model_b else "model_a")
        return [(a, b)]
    same = [label for label in models_a if label in models_b]
    if same:
        return [(models_a[label], models_b[label]) for label in same]
    if len(models_a) == len(models_b) == 1:
        return list(zip(models_a.values(), models_b.values(), strict=True))
    raise ComparisonError(
        f"No model has the same label in both runs; choose one of run {run_a.pk}, of {', '.join(models_a)}, "
        f"and one of run {run_b.pk}, of {', '.join(models_b)}.",
        "model_a",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCells:
    """One environment under one model of each run."""

    run_a: Run
    run_b: Run
    environment_a: RunEnvironment
    environment_b: RunEnvironment
    model_a: RunModel
    model_b: RunModel


def find_cells(run_a: Run, run_b: Run, *, model_a: str, model_b: str, environment: str) -> ComparedCells:
    """Return the cells of *environment* under the two models, paired as `compare` does. Raises ComparisonError."""
    pairs = _model_pairs(run_a, run_b, model_a or None, model_b or None)
    if len(pairs) > 1:
        raise ComparisonError(
            f"Several models are in both runs; choose one of {', '.join(a.label for a, _ in pairs)}.", "model_a"
        )
    environments_a, environments_b = _run_environments(run_a), _run_environments(run_b)
    shared = [slug for slug in environments_a if slug in environments_b]
    if environment not in shared:
        raise ComparisonError(
            f"The runs do not both have an environment {environment!r}; "
            + (f"they have {', '.join(shared)}." if shared else "they have none in common."),
            "environment",
        )
    return ComparedCells(
        run_a=run_a,
        run_b=run_b,
        environment_a=environments_a[environment],
        environment_b=environments_b[environment],
        model_a=pairs[0][0],
        model_b=pairs[0][1],
    )


def _models(run: Run) -> dict[str, RunModel]:
    return {model.label: model for model in models_under_test(run)}


def _named(run: Run, models: dict[str, RunModel], label: str | None, path: str) -> RunModel:
    """Return the model with *label*. Raises ComparisonError with *path*, the parameter that gives the label."""
    if label not in models:
        raise ComparisonError(f"Run {run.pk} has no model {label!r}; its models are {', '.join(models)}.", path)
    return models[label]


def _run_environments(run: Run) -> dict[str, RunEnvironment]:
    stored = run.environments.select_related("version__environment").order_by("position")
    return {item.version.environment.slug: item for item in stored}


# ---- one environment -------------------------------------------------------------------------------------------------


def _compare_environment(
    environment_a: RunEnvironment, environment_b: RunEnvironment, side_a: Side, side_b: Side
) -> EnvironmentComparison:
    left_out: Counter[str] = Counter()
    rows_a: list[int] = []  # of the cases that are compared
    rows_b: list[int] = []
    for match in match_cases(side_a, side_b):
        reason = reason_not_compared(side_a, side_b, match)
        left_out[reason] += 1
        if not reason:
            rows_a.append(match.a)
            rows_b.append(match.b)
    matched = left_out.total()
    del left_out[""]
    left_out[ONLY_A], left_out[ONLY_B] = len(side_a.means) - matched, len(side_b.means) - matched
    means_a = [side_a.means[row] or 0.0 for row in rows_a]
    means_b = [side_b.means[row] or 0.0 for row in rows_b]
    grouped = _clusters(side_a, rows_a) or _clusters(side_b, rows_b)
    paired = paired_difference(means_a, means_b, grouped)
    cost = ([_cost(side_a, row) for row in rows_a], [_cost(side_b, row) for row in rows_b])
    latency = ([side_a.cases.latency[row] for row in rows_a], [side_b.cases.latency[row] for row in rows_b])
    better_a = [row for row, x, y in zip(rows_a, means_a, means_b, strict=True) if x > y]
    better_b = [row for row, x, y in zip(rows_a, means_a, means_b, strict=True) if x < y]
    return EnvironmentComparison(
        slug=environment_a.version.environment.slug,
        version_a=str(environment_a.version),
        version_b=str(environment_b.version),
        paired=paired,
        cost=_amounts(*cost, grouped),
        latency=_amounts(*latency, grouped),
        p_adjusted=None,
        better_a=_ids(side_a, better_a),
        better_b=_ids(side_a, better_b),
        left_out={reason: count for reason, count in left_out.items() if count},
        notes=environment_notes(environment_a, environment_b, paired, left_out)
        + cache_notes(
            cached_a=sum(_is_cached(side_a, row) for row in rows_a),
            cached_b=sum(_is_cached(side_b, row) for row in rows_b),
        ),
    )


def _clusters(side: Side, rows: Sequence[int]) -> list[str | int] | None:
    """Return the clusters of the cases at *rows*, those without one alone; None if no case has one."""
    found = side.cases
    if not found.cluster:
        return None
    named = {found.case[row]: cluster for row in rows if (cluster := found.cluster[row])}
    return clusters_of([found.case[row] for row in rows], named)


def _is_cached(side: Side, row: int) -> bool:
    """Whether nothing was paid for the case at *row*, because no reply was requested for it."""
    return side.cases.cost[row] == 0 and side.cases.latency[row] is None


def _cost(side: Side, row: int) -> float | None:
    """Return what the case at *row* costs; None if unknown, as for cases answered from the cache."""
    return None if _is_cached(side, row) else side.cases.cost[row]


def _ids(side: Side, rows: Sequence[int]) -> list[str]:
    """Return the ids of the cases at *rows*."""
    if not rows:
        return []
    ids = side.names.ids
    return [ids[side.cases.case[row]] for row in rows]


def _amounts(a: Sequence[float | None], b: Sequence[float | None], clusters: Sequence[str | int] | None) -> PairedRatio:
    """Compare the amounts of the cases that have one on both sides."""
    known = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x is not None and y is not None]
    groups = None if clusters is None else [clusters[i] for i in known]
    return paired_ratio([a[i] or 0.0 for i in known], [b[i] or 0.0 for i in known], groups)


def adjust_all(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Apply Holm's correction over all environments and pairs of models of *comparisons*."""
    tested = [
        item.paired.p_value
        for comparison in comparisons
        for pair in comparison.models
        for item in pair.environments
        if item.paired.p_value is not None
    ]
    adjusted = iter(holm(tested))
    return [
        replace(
            comparison,
            models=[
                replace(
                    pair,
                    environments=[
                        item if item.paired.p_value is None else replace(item, p_adjusted=next(adjusted))
                        for item in pair.environments
                    ],
                )
                for pair in comparison.models
            ],
        )
        for comparison in comparisons
    ]
