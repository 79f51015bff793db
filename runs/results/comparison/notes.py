"""Notes on a comparison: differences between the runs, and the number of cases that are left out, by reason."""

from collections import Counter
from collections.abc import Collection

from hub.common.wording import counted
from runs.models import Run, RunEnvironment
from runs.results.comparison.cases import ONLY_A, ONLY_B, OTHER_INPUT, OTHER_SCORING, QUARANTINED, UNSCORED
from runs.results.statistics.paired import PairedDifference


def environment_notes(
    environment_a: RunEnvironment, environment_b: RunEnvironment, paired: PairedDifference, left_out: Counter[str]
) -> list[str]:
    """Return sentences about one environment: differing versions, and cases left out by reason."""
    notes = []
    if environment_a.version.digest != environment_b.version.digest:
        notes.append(
            f"The runs are of {environment_a.version} and {environment_b.version}, whose content differs. Only the "
            f"cases with equal input and scoring are compared: {paired.n:,}."
        )
    if left_out[OTHER_INPUT]:
        notes.append(
            f"{_left_out(left_out[OTHER_INPUT])} because A asked something else than B (prompt, tools, files or "
            "harness). Both models must answer the same version."
        )
    if left_out[OTHER_SCORING]:
        notes.append(
            f"{_left_out(left_out[OTHER_SCORING])} because A and B were scored differently. Score the stored responses "
            "again (manage.py rescore) to compare them without asking a model."
        )
    if left_out[UNSCORED]:
        notes.append(f"{_left_out(left_out[UNSCORED])} because one side is errored or unscored.")
    if left_out[QUARANTINED]:
        notes.append(f"{_left_out(left_out[QUARANTINED])} because a curator found the case wrong.")
    if left_out[ONLY_A] or left_out[ONLY_B]:
        notes.append(f"Answered in A only: {counted(left_out[ONLY_A], 'case')}, in B only: {left_out[ONLY_B]:,}.")
    if paired.note:
        notes.append(f"{paired.note[0].upper()}{paired.note[1:]}.")
    return notes


def cache_notes(*, cached_a: int, cached_b: int) -> list[str]:
    """Return a sentence if cases cost nothing because their replies came from the cache."""
    if not cached_a and not cached_b:
        return []
    return [
        f"Costs are compared without the cases that were answered from the cache: {counted(cached_a, 'case')} in A, "
        f"{cached_b:,} in B."
    ]


def _left_out(number: int) -> str:
    return f"Left out: {counted(number, 'case')},"


def run_notes(
    run_a: Run, run_b: Run, environments_a: dict[str, RunEnvironment], environments_b: dict[str, RunEnvironment]
) -> list[str]:
    """Return sentences about the two runs: environments of only one, attempts, runs in progress."""
    notes = []
    if alone := _of_only_one(environments_a, environments_b):
        notes.append(f"Not compared, because only one run has them: {alone}.")
    if run_a.attempts != run_b.attempts:
        notes.append(
            f"A has {run_a.attempts} attempts per case and B {run_b.attempts}; the means of each are compared."
        )
    for name, run in {"A": run_a, "B": run_b}.items():
        if run.status != Run.Status.COMPLETED:
            notes.append(f"Run {name} is {run.get_status_display()}; cases without a response are left out.")
    return list(dict.fromkeys(notes))


def model_notes(labels_a: Collection[str], labels_b: Collection[str]) -> list[str]:
    """Return a sentence about the models of only one of two runs whose models with the same label are compared."""
    alone = _of_only_one(labels_a, labels_b)
    return [f"Models that are not compared, because only one run has them: {alone}."] if alone else []


def _of_only_one(names_a: Collection[str], names_b: Collection[str]) -> str:
    alone = [f"{name} (A only)" for name in names_a if name not in names_b]
    alone += [f"{name} (B only)" for name in names_b if name not in names_a]
    return ", ".join(alone)
