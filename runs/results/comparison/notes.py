"""Notes that a reader of a comparison needs: differences between the runs, and cases that are left out."""

from collections import Counter

from runs.models import Run, RunEnvironment
from runs.results.comparison.cases import ONLY_A, ONLY_B, OTHER_INPUT, OTHER_SCORING, QUARANTINED, UNSCORED
from runs.results.statistics.paired import PairedDifference


def environment_notes(
    part_a: RunEnvironment, part_b: RunEnvironment, paired: PairedDifference, left_out: Counter[str]
) -> list[str]:
    notes = []
    if part_a.version.digest != part_b.version.digest:
        notes.append(
            f"The runs are of {part_a.version} and {part_b.version}, whose content differs: {paired.n:,} cases have "
            "equal input and scoring and are compared."
        )
    if left_out[OTHER_INPUT]:
        notes.append(
            f"{left_out[OTHER_INPUT]:,} cases ask something else in A than in B (prompt, tools, files or harness); "
            "they compare only after both models answer the same version."
        )
    if left_out[OTHER_SCORING]:
        notes.append(
            f"{left_out[OTHER_SCORING]:,} cases ask the same but are scored differently; score the stored responses "
            "again (manage.py rescore) to compare them without asking a model."
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


def run_notes(
    run_a: Run, run_b: Run, parts_a: dict[str, RunEnvironment], parts_b: dict[str, RunEnvironment]
) -> list[str]:
    notes = []
    alone = [f"{slug} (A only)" for slug in parts_a if slug not in parts_b]
    alone += [f"{slug} (B only)" for slug in parts_b if slug not in parts_a]
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
