"""Cases that two cells answered with different results, or wrong in different ways."""

from dataclasses import dataclass

from django.db.models import TextChoices

from runs.results.comparison.cases import OTHER_INPUT, OTHER_SCORING, CaseLoader, match_cases
from runs.results.comparison.pair import ComparedCells


class Change(TextChoices):
    """Kind of difference between two results of a case."""

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
    loader = CaseLoader()
    side_a = loader.side(cells.run_a, cells.environment_a, cells.model_a)
    side_b = loader.side(cells.run_b, cells.environment_b, cells.model_b)
    ids = side_a.names.ids
    flips = {}
    for match in match_cases(side_a, side_b):
        pk, a, b = side_a.cases.case[match.a], side_a.means[match.a], side_b.means[match.b]
        if pk in side_a.quarantined or side_b.cases.case[match.b] in side_b.quarantined or a is None or b is None:
            continue
        if a != b:
            change = Change.BETTER_A if a > b else Change.BETTER_B
        elif a == 0 and side_a.cases.wrong[match.a] != side_b.cases.wrong[match.b]:
            change = Change.BOTH_WRONG
        else:
            continue
        differs = [OTHER_INPUT] if match.other_input else []
        differs += [OTHER_SCORING] if match.other_scoring else []
        flips[ids[pk]] = Flip(pk=pk, case=ids[pk], change=change, mean_a=a, mean_b=b, differs=" and ".join(differs))
    return flips
