"""Cases that two cells answered with different results, or wrong in different ways."""

from dataclasses import dataclass

from django.db.models import TextChoices
from django.db.models.functions import MD5

from runs.models import Response, RunEnvironment, RunModel
from runs.results.comparison.cases import OTHER_INPUT, OTHER_SCORING, load_cases
from runs.results.comparison.pair import ComparedCells
from runs.results.counting import cell_responses


class Change(TextChoices):
    BETTER_A = "better_a", "better in A"
    BETTER_B = "better_b", "better in B"
    BOTH_WRONG = "both_wrong", "both wrong, with different answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Case `case`, stored as `pk` in the version of run A. The means are the shares of attempts that passed.

    `differs` says what is not the same on both sides, in which case the statistics leave the case out.
    """

    pk: int
    case: str
    change: Change
    mean_a: float
    mean_b: float
    differs: str


def list_flips(cells: ComparedCells) -> dict[str, Flip]:
    """Return the flips by case id. Cases are matched by id, also if their input or scoring differs."""
    side_a = load_cases(cells.run_a, cells.part_a, cells.model_a)
    side_b = load_cases(cells.run_b, cells.part_b, cells.model_b)
    answers_a = _wrong_answers(cells.part_a, cells.model_a)
    answers_b = _wrong_answers(cells.part_b, cells.model_b)
    flips = {}
    for name, a in side_a.items():
        b = side_b.get(name)
        if b is None or a.quarantined or b.quarantined or a.mean is None or b.mean is None:
            continue
        if a.mean != b.mean:
            change = Change.BETTER_A if a.mean > b.mean else Change.BETTER_B
        elif a.mean == 0 and answers_a.get(name) != answers_b.get(name):
            change = Change.BOTH_WRONG
        else:
            continue
        differs = [OTHER_INPUT] if a.input_digest != b.input_digest else []
        differs += [OTHER_SCORING] if a.scoring_digest != b.scoring_digest else []
        flips[name] = Flip(
            pk=a.pk, case=name, change=change, mean_a=a.mean, mean_b=b.mean, differs=" and ".join(differs)
        )
    return flips


def _wrong_answers(part: RunEnvironment, model: RunModel) -> dict[str, frozenset[str]]:
    """Return digests of the failed answers to each case. The database computes them, because texts may be long."""
    rows = cell_responses(part, model).filter(status=Response.Status.FAILED).annotate(digest=MD5("text"))
    answers: dict[str, set[str]] = {}
    for name, digest in rows.values_list("case__external_id", "digest").iterator(chunk_size=2000):
        answers.setdefault(name, set()).add(digest)
    return {name: frozenset(digests) for name, digests in answers.items()}
