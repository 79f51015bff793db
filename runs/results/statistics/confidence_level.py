"""Level of confidence that intervals and tests share."""

from statistics import NormalDist

CONFIDENCE = 0.95
_SIGNIFICANT = 0.05
Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


def is_significant(p_value: float | None) -> bool:
    """Return whether a test with this p-value shows a difference; not if there was no test."""
    return p_value is not None and p_value < _SIGNIFICANT
