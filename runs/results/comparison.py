"""Two models side by side on the cases both answered, within one run or across two: differences, tests, flips.

Cases are compared one by one: same id, same input digest, same scoring digest. What does not compare is counted by
why, and never silently dropped.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hub.common.errors import UserError
from hub.protocols.messages import JSON
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.results.counting import case_clusters, cell_responses, quarantined_cases
from runs.results.statistics.paired import PairedDifference, holm, paired_difference

_SCORED = (Response.Status.PASSED, Response.Status.FAILED)

# Why a case of either side has no partner to be compared with, in the words of the reports.
ONLY_A, ONLY_B = "only in A", "only in B"
OTHER_INPUT = "other input"
OTHER_SCORING = "other scoring"
UNSCORED = "not scored by both"
QUARANTINED = "quarantined"


class ComparisonError(UserError):
    """These two cannot be compared; the text says why and what to name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentComparison:
    """One environment under two models. Flips are case ids; `p_adjusted` is Holm's over the pair's environments."""

    slug: str
    version_a: str
    version_b: str
    paired: PairedDifference
    p_adjusted: float | None
    better_a: list[str]
    better_b: list[str]
    left_out: dict[str, int]
    notes: list[str]

    def to_json(self) -> dict[str, JSON]:
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
            "better_a": self.better_a,
            "better_b": self.better_b,
            "left_out": self.left_out,
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """Model *a* of run A beside model *b* of run B, on every environment that both runs played."""

    model_a: str
    model_b: str
    environments: list[EnvironmentComparison]

    def to_json(self) -> dict[str, JSON]:
        return {
            "model_a": self.model_a,
            "model_b": self.model_b,
            "environments": [item.to_json() for item in self.environments],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Differences are A - B, of accuracies from 0 to 1. `notes` hold what concerns the runs as a whole."""

    run_a: Run
    run_b: Run
    models: list[ModelComparison]
    notes: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """Number of pairs of results that were compared; 0 if nothing was comparable."""
        return sum(item.paired.n for pair in self.models for item in pair.environments)

    def to_json(self) -> dict[str, JSON]:
        """The document of `compare --json`."""
        return {
            "a": _run_json(self.run_a),
            "b": _run_json(self.run_b),
            "models": [item.to_json() for item in self.models],
            "notes": self.notes,
        }


def _run_json(run: Run) -> dict[str, JSON]:
    return {"run": run.pk, "name": run.name, "status": run.status, "config_hash": run.config_hash}


def compare(run_a: Run, run_b: Run, *, model_a: str | None = None, model_b: str | None = None) -> Comparison:
    """Compare two runs, or two models of one run. Raises ComparisonError.

    Models of one label are paired; where there are none, or names are given, one model of each run.
    """
    pairs = _model_pairs(run_a, run_b, model_a, model_b)
    parts_a, parts_b = _parts(run_a), _parts(run_b)
    shared = [slug for slug in parts_a if slug in parts_b]
    if not shared:
        raise ComparisonError(
            f"The runs have no environment in common: run {run_a.pk} played {', '.join(parts_a)}, "
            f"run {run_b.pk} played {', '.join(parts_b)}."
        )
    models = []
    for a, b in pairs:
        found = [_compare_environment(run_a, run_b, parts_a[slug], parts_b[slug], a, b) for slug in shared]
        models.append(ModelComparison(model_a=a.label, model_b=b.label, environments=_adjusted(found)))
    return Comparison(run_a=run_a, run_b=run_b, models=models, notes=_run_notes(run_a, run_b, parts_a, parts_b))


def _model_pairs(run_a: Run, run_b: Run, model_a: str | None, model_b: str | None) -> list[tuple[RunModel, RunModel]]:
    models_a, models_b = _models(run_a), _models(run_b)
    if run_a.pk == run_b.pk:
        if not model_a and not model_b and len(models_a) == 2:
            model_a, model_b = models_a
        if not model_a or not model_b or model_a == model_b:
            raise ComparisonError(f"Within one run, choose two different models, of {', '.join(models_a)}.", "model_a")
    if model_a or model_b:
        return [(_named(run_a, models_a, model_a or model_b), _named(run_b, models_b, model_b or model_a))]
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


def _models(run: Run) -> dict[str, RunModel]:
    return {model.label: model for model in run.models.filter(role="").order_by("position")}


def _named(run: Run, models: dict[str, RunModel], label: str | None) -> RunModel:
    if label not in models:
        raise ComparisonError(f"Run {run.pk} has no model {label!r}; its models are {', '.join(models)}.")
    return models[label]


def _parts(run: Run) -> dict[str, RunEnvironment]:
    parts = run.environments.select_related("version__environment").order_by("position")
    return {part.version.environment.slug: part for part in parts}


# ---- one environment -------------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """A case as one side has it: digests, mean of its scored attempts (None: none was scored), cluster."""

    input_digest: str
    scoring_digest: str
    mean: float | None
    cluster: str | None
    quarantined: bool


def _side(run: Run, part: RunEnvironment, model: RunModel) -> dict[str, _Side]:
    """Every case that was answered, by its id."""
    left_out = quarantined_cases(run, part)
    clusters = case_clusters(part)
    counts: Counter[tuple[int, bool]] = Counter()
    cases: dict[int, tuple[str, str, str]] = {}
    for pk, external_id, inputs, scoring, status in _rows(part, model):
        cases[pk] = (external_id, inputs, scoring)
        if status in _SCORED:
            counts[pk, status == Response.Status.PASSED] += 1
    sides = {}
    for pk, (external_id, inputs, scoring) in cases.items():
        scored = counts[pk, True] + counts[pk, False]
        mean = counts[pk, True] / scored if scored else None
        sides[external_id] = _Side(inputs, scoring, mean, clusters.get(pk), pk in left_out)
    return sides


def _rows(part: RunEnvironment, model: RunModel) -> Iterator[tuple[int, str, str, str, str]]:
    columns = ("case_id", "case__external_id", "case__input_digest", "case__scoring_digest", "status")
    return cell_responses(part, model).values_list(*columns).iterator(chunk_size=2000)


def _compare_environment(
    run_a: Run, run_b: Run, part_a: RunEnvironment, part_b: RunEnvironment, a: RunModel, b: RunModel
) -> EnvironmentComparison:
    side_a, side_b = _side(run_a, part_a, a), _side(run_b, part_b, b)
    left_out = Counter({ONLY_B: sum(case not in side_a for case in side_b)})
    shared: list[str] = []
    for case, of_a in side_a.items():
        why = _why_not(of_a, side_b.get(case))
        if why:
            left_out[why] += 1
        else:
            shared.append(case)
    means_a = [side_a[case].mean or 0.0 for case in shared]
    means_b = [side_b[case].mean or 0.0 for case in shared]
    clusters = [side_a[case].cluster or f"case {case}" for case in shared]
    clustered = any(side_a[case].cluster is not None for case in shared)
    paired = paired_difference(means_a, means_b, clusters if clustered else None)
    return EnvironmentComparison(
        slug=part_a.version.environment.slug,
        version_a=str(part_a.version),
        version_b=str(part_b.version),
        paired=paired,
        p_adjusted=None,
        better_a=[case for case, x, y in zip(shared, means_a, means_b, strict=True) if x > y],
        better_b=[case for case, x, y in zip(shared, means_a, means_b, strict=True) if x < y],
        left_out={why: count for why, count in left_out.items() if count},
        notes=_notes(part_a, part_b, paired, left_out),
    )


def _why_not(of_a: _Side, of_b: _Side | None) -> str:
    if of_b is None:
        return ONLY_A
    if of_a.input_digest != of_b.input_digest:
        return OTHER_INPUT
    if of_a.scoring_digest != of_b.scoring_digest:
        return OTHER_SCORING
    if of_a.quarantined or of_b.quarantined:
        return QUARANTINED
    return UNSCORED if of_a.mean is None or of_b.mean is None else ""


def _adjusted(found: list[EnvironmentComparison]) -> list[EnvironmentComparison]:
    """Holm's correction over the environments that have a p value."""
    tested = [(i, item.paired.p_value) for i, item in enumerate(found) if item.paired.p_value is not None]
    adjusted = list(found)
    for (i, _), value in zip(tested, holm([p for _, p in tested]), strict=True):
        adjusted[i] = replace(found[i], p_adjusted=value)
    return adjusted


# ---- what to know ----------------------------------------------------------------------------------------------------


def _notes(
    part_a: RunEnvironment, part_b: RunEnvironment, paired: PairedDifference, left_out: Counter[str]
) -> list[str]:
    notes = []
    if part_a.version.digest != part_b.version.digest:
        notes.append(
            f"The runs played {part_a.version} and {part_b.version}, whose content differs: {paired.n:,} cases have "
            "equal input and scoring and are compared."
        )
    if left_out[OTHER_INPUT]:
        notes.append(
            f"{left_out[OTHER_INPUT]:,} cases ask something else in A than in B (prompt, tools, files or harness); "
            "they compare only after both models answer the same version."
        )
    if left_out[OTHER_SCORING]:
        notes.append(
            f"{left_out[OTHER_SCORING]:,} cases ask the same but are scored differently; replay their stored responses "
            "on one version (export_responses) to compare them without asking a model."
        )
    if left_out[UNSCORED]:
        notes.append(f"{left_out[UNSCORED]:,} cases are errored or unscored on one side.")
    if left_out[QUARANTINED]:
        notes.append(f"{left_out[QUARANTINED]:,} cases are left out, because a curator found them wrong.")
    if left_out[ONLY_A] or left_out[ONLY_B]:
        notes.append(f"{left_out[ONLY_A]:,} cases were answered in A only, {left_out[ONLY_B]:,} in B only.")
    if paired.note:
        notes.append(f"{paired.note[0].upper()}{paired.note[1:]}.")
    return notes


def _run_notes(
    run_a: Run, run_b: Run, parts_a: dict[str, RunEnvironment], parts_b: dict[str, RunEnvironment]
) -> list[str]:
    notes = []
    alone = [f"{slug} (A only)" for slug in parts_a if slug not in parts_b]
    alone += [f"{slug} (B only)" for slug in parts_b if slug not in parts_a]
    if alone:
        notes.append(f"Not compared, for only one run played them: {', '.join(alone)}.")
    if run_a.attempts != run_b.attempts:
        notes.append(
            f"A has {run_a.attempts} attempts per case and B {run_b.attempts}; the means of each are compared."
        )
    for name, run in {"A": run_a, "B": run_b}.items():
        if run.status != Run.Status.COMPLETED:
            notes.append(f"Run {name} is {run.get_status_display()}; cases without a response are left out.")
    return list(dict.fromkeys(notes))
