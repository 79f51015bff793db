"""Rows of a comparison: each environment and pair of models, with a sentence that says which one is better."""

from collections.abc import Sequence
from dataclasses import dataclass

from hub.common.output.foreign_text import clean
from hub.common.wording import counted
from runs.reports import formats
from runs.reports.differences import describe_correction, describe_size
from runs.results.comparison.pair import Comparison, EnvironmentComparison, ModelComparison
from runs.results.statistics.confidence_level import is_significant


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """One environment and pair of models, with the names of both sides and the sentence about them."""

    comparison: Comparison
    pair: ModelComparison
    item: EnvironmentComparison
    name_a: str
    name_b: str
    verdict: str

    @property
    def is_significant(self) -> bool:
        """Whether a difference is shown, in favour of either side."""
        return is_significant(self.item.p_adjusted)


def compared_rows(comparisons: Sequence[Comparison], *, margin: float | None = None) -> list[ComparedRow]:
    """Return everything that *comparisons* compare, in their order. margin: as in `describe_comparison`."""
    found = [
        (comparison, pair, item)
        for comparison in comparisons
        for pair in comparison.models
        for item in pair.environments
    ]
    rows = []
    for comparison, pair, item in found:
        name_a, name_b = _names(comparison, pair)
        verdict = describe_comparison(item, name_a, name_b, margin, several=len(found) > 1)
        rows.append(
            ComparedRow(comparison=comparison, pair=pair, item=item, name_a=name_a, name_b=name_b, verdict=verdict)
        )
    return rows


def _names(comparison: Comparison, pair: ModelComparison) -> tuple[str, str]:
    a, b = clean(pair.model_a), clean(pair.model_b)
    if comparison.run_a.pk == comparison.run_b.pk:
        return a, b
    return f"{a} (run {comparison.run_a.pk})", f"{b} (run {comparison.run_b.pk})"


def describe_comparison(
    item: EnvironmentComparison, name_a: str, name_b: str, margin: float | None = None, *, several: bool = False
) -> str:
    """Return a sentence: which side is better, whether both are equivalent within *margin*, or what is not shown.

    margin: equivalence margin as a share; None if equivalence is not tested
    several: more is compared, so that the power is only that of the test before Holm's correction
    """
    paired = item.paired
    if paired.difference is None or paired.low is None or paired.high is None:
        return f"{name_a} and {name_b} cannot be compared on {item.slug}: {paired.note or 'there is no interval'}."
    cases = f"(n = {counted(paired.n, 'case')})"
    equivalent = margin is not None and -margin <= paired.low and paired.high <= margin
    within = f"within the margin of {100 * margin:g} points" if margin is not None else ""
    if is_significant(item.p_adjusted):
        better, worse = (name_a, name_b) if paired.difference > 0 else (name_b, name_a)
        size = describe_size(paired.difference, paired.low, paired.high)
        addition = f", which is {within}" if equivalent else ""
        return f"{better} is better than {worse} on {item.slug} by {size} {cases}{addition}."
    difference = f"{formats.points(paired.difference)} points {formats.interval(paired.low, paired.high)} {cases}"
    if equivalent:
        return f"{name_a} and {name_b} are equivalent on {item.slug} {within}: {difference}."
    correction = describe_correction(paired.p_value, item.p_adjusted, over=" for everything compared")
    power = ""
    if paired.mde is not None:
        power = f"; a true difference of {formats.size(paired.mde)} points would be found with 80 % power"
        power += " before Holm's correction" if several else ""
    return f"No difference between {name_a} and {name_b} is shown on {item.slug}: {difference}{correction}{power}."
