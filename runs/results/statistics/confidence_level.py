"""Level of confidence that intervals and tests share."""

from statistics import NormalDist

CONFIDENCE = 0.95
SIGNIFICANT = 0.05  # a difference with a lower p-value is shown
Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
