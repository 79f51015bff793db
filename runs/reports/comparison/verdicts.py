"""One sentence for each environment and pair of models of a comparison: which one is better, if that is shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hub.common.output.foreign_text import clean
from hub.common.wording import counted
from runs.reports import formats
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
    """Return everything that *comparisons* compare, in their order."""
    return list(_rows(comparisons, margin))


def _rows(comparisons: Sequence[Comparison], margin: float | None) -> Iterator[ComparedRow]:
    several = sum(len(pair.environments) for comparison in comparisons for pair in comparison.models) > 1
    for comparison in comparisons:
        for pair in comparison.models:
            name_a, name_b = _names(comparison, pair)
            for item in pair.environments:
                yield ComparedRow(
                    comparison=comparison,
                    pair=pair,
                    item=item,
                    name_a=name_a,
                    name_b=name_b,
                    verdict=compared_verdict(item, name_a, name_b, margin, several=several),
                )


def _names(comparison: Comparison, pair: ModelComparison) -> tuple[str, str]:
    a, b = clean(pair.model_a), clean(pair.model_b)
    if comparison.run_a.pk == comparison.run_b.pk:
        return a, b
    return f"{a} (run {comparison.run_a.pk})", f"{b} (run {comparison.run_b.pk})"


def compared_verdict(
    item: EnvironmentComparison, name_a: str, name_b: str, margin: float | None = None, *, several: bool = False
) -> str:
    """Return a sentence: which side is better, whether both are equivalent within *margin*, or what is not shown.

    several: more is compared, so that the power is only that of the test before Holm's correction.
    """
    paired = item.paired
    if paired.difference is None or paired.low is None or paired.high is None:
        return f"{name_a} and {name_b} cannot be compared on {item.slug}: {paired.note or 'there is no interval'}."
    number = f"(n = {counted(paired.n, 'case')})"
    difference = f"{formats.points(paired.difference)} points {formats.interval(paired.low, paired.high)} {number}"
    equivalent = margin is not None and -margin <= paired.low and paired.high <= margin
    within = f"within the margin of {100 * margin:g} points" if margin is not None else ""
    if is_significant(item.p_adjusted):
        first, second = (name_a, name_b) if paired.difference > 0 else (name_b, name_a)
        low, high = (paired.low, paired.high) if paired.difference > 0 else (-paired.high, -paired.low)
        size = f"{formats.size(paired.difference)} points {formats.interval(low, high)} {number}"
        addition = f", which is {within}" if equivalent else ""
        return f"{first} is better than {second} on {item.slug} by {size}{addition}."
    if equivalent:
        return f"{name_a} and {name_b} are equivalent on {item.slug} {within}: {difference}."
    text = f"No difference between {name_a} and {name_b} is shown on {item.slug}: {difference}"
    if is_significant(paired.p_value):
        corrected = formats.p_value(item.p_adjusted)
        text += (
            f"; p is {formats.p_value(paired.p_value)}, but {corrected} after Holm's correction for everything compared"
        )
    if paired.mde is not None:
        text += f"; a true difference of {formats.size(paired.mde)} points would be found with 80 % power"
        text += " before Holm's correction" if several else ""
    return f"{text}."
