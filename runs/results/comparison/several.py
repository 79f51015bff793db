"""Comparison of more than two runs or models: every pair, with Holm's correction over everything that is shown."""

from collections.abc import Sequence
from itertools import combinations

from runs.models import Run
from runs.results.comparison.cases import CaseLoader
from runs.results.comparison.pair import Comparison, ComparisonError, adjust_all, compare
from runs.selectors import list_model_labels

MOST_PAIRS = 66  # of twelve runs or models


def compare_all(runs: Sequence[Run], *, model_a: str | None = None, model_b: str | None = None) -> list[Comparison]:
    """Compare each two of *runs*, the earlier one as A; of one run, each two of its models. Raises ComparisonError.

    A run that is named twice is compared once.
    """
    runs = list(dict.fromkeys(runs))
    loader = CaseLoader()
    if len(runs) > 2 and model_a != model_b:
        raise ComparisonError(
            "Models can be named for two runs only; leave them out to compare equal labels.", "model_a"
        )
    if len(runs) > 1:
        pairs = list(combinations(runs, 2))
        _check_number(len(pairs), f"{len(runs)} runs", "Name fewer.")
        found = []
        for a, b in pairs:
            try:
                found.append(compare(a, b, model_a=model_a, model_b=model_b, loader=loader))
            except ComparisonError as error:
                if len(runs) == 2 or model_a:
                    raise
                alone = f"compare runs {a.pk} and {b.pk} alone, or leave one out."
                remedy = f"Models can be chosen for two runs only: {alone}"
                raise ComparisonError(f"{error} {remedy}") from None
    else:
        labels = list_model_labels(runs[0])
        if model_a or model_b or len(labels) < 3:
            found = [compare(runs[0], runs[0], model_a=model_a, model_b=model_b, loader=loader)]
        else:
            names = list(combinations(labels, 2))
            _check_number(len(names), f"{len(labels)} models of the run", "Choose two of them.", "model_a")
            found = [compare(runs[0], runs[0], model_a=a, model_b=b, loader=loader) for a, b in names]
    return adjust_all(found)


def _check_number(pairs: int, compared: str, advice: str, field: str = "") -> None:
    if pairs > MOST_PAIRS:
        raise ComparisonError(
            f"The {compared} make {pairs:,} pairs, and at most {MOST_PAIRS} are compared at once. {advice}", field
        )
