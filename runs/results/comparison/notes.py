"""Notes on a comparison: differences between the runs, and the number of cases that are left out, by reason."""

from collections import Counter

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


def _left_out(number: int) -> str:
    return f"Left out: {counted(number, 'case')},"


def run_notes(
    run_a: Run, run_b: Run, environments_a: dict[str, RunEnvironment], environments_b: dict[str, RunEnvironment]
) -> list[str]:
    """Return sentences about the two runs: environments of only one, attempts, runs in progress."""
    notes = []
    alone = [f"{slug} (A only)" for slug in environments_a if slug not in environments_b]
    alone += [f"{slug} (B only)" for slug in environments_b if slug not in environments_a]
    if alone:
        notes.append(f"Not compared, because only one run has them: {', '.join(alone)}.")
    if run_a.attempts != run_b.attempts:
        notes.append(
            f"A has {run_a.attempts} attempts per case and B {run_b.attempts}; the means of each are compared."
        )
    for name, run in {"A": run_a, "B": run_b}.items():
        if run.status != Run.Status.COMPLETED:
            notes.append(f"Run {name} is {run.get_status_display()}; cases without a response are left out.")
    return list(dict.fromkeys(notes))
