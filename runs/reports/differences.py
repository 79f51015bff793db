"""Parts of sentences about the paired difference of two models, for the verdicts on a run and on a comparison."""

from runs.reports import formats
from runs.results.statistics.confidence_level import is_significant


def describe_size(difference: float | None, low: float | None, high: float | None) -> str:
    """Return how much better the better model is, with the interval of that: `5.0 points [1.2, 8.8]`.

    All three are shares from -1 to 1. If the difference is negative, the interval changes its sign with it.
    """
    if difference is None or low is None or high is None:
        return formats.UNDEFINED
    if difference < 0:
        low, high = -high, -low
    return f"{formats.size(difference)} points {formats.interval(low, high)}"


def describe_correction(p_value: float | None, p_adjusted: float | None, *, over: str = "") -> str:
    """Return why a difference is not shown although *p_value* alone would show it; "" for all other differences.

    over: what the correction covers, as it continues the sentence, such as ` for everything compared`
    """
    if is_significant(p_adjusted) or not is_significant(p_value):
        return ""
    return f"; p is {formats.p_value(p_value)}, but {formats.p_value(p_adjusted)} after Holm's correction{over}"
