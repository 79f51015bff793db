"""Power of paired comparisons."""

import math
from statistics import NormalDist

from runs.results.statistics.confidence_level import CONFIDENCE, Z

POWER = 0.80
_Z_POWER = NormalDist().inv_cdf(POWER)
LEAST_PAIRS = 6  # that can have p < 0.05 in exact McNemar
_MANY_FLIPS = 5_000  # above, the normal approximation of the power is within 2 %


def minimum_detectable_effect(flip_rate: float, n: int) -> float | None:
    """Return the smallest true difference that exact McNemar over *n* pairs finds with 80 % power.

    *flip_rate* is the share of pairs with different results. A larger difference needs at least as many flips, so the
    rate is raised to the difference if it is smaller. Above 5,000 flips this is Miller's (z_0.975 + z_0.8) SE with
    SE = sqrt(flip_rate / n) (arXiv 2411.00640, section 5). None for fewer than 6 pairs: 5 flips one way have p 0.0625.
    """
    if n < LEAST_PAIRS:
        return None
    if n * flip_rate > _MANY_FLIPS:
        return (Z + _Z_POWER) * math.sqrt(flip_rate / n)
    low, high = 0.0, 1.0
    expected = _Flips(flip_rate, n)
    while high - low > 1e-4 * high:  # relative, since a million pairs find differences of 1e-5
        middle = (low + high) / 2
        flips = expected if middle <= flip_rate else _Flips(middle, n)
        if flips.power(middle) < POWER:
            low = middle
        else:
            high = middle
    return high


class _Flips:
    """Numbers of pairs that may flip if *flip_rate* of *n* do on average, and what exact McNemar finds for each."""

    def __init__(self, flip_rate: float, n: int) -> None:
        import numpy as np
        from scipy.special import bdtr, bdtrik, gammaln, xlog1py, xlogy  # slow to import, and needed by few commands

        self._rate = flip_rate
        spread = 10 * math.sqrt(n * flip_rate) + 10
        flips = np.arange(max(0, math.floor(n * flip_rate - spread)), min(n, math.ceil(n * flip_rate + spread)) + 1)
        chance = np.exp(
            gammaln(n + 1)
            - gammaln(flips + 1)
            - gammaln(n - flips + 1)
            + xlogy(flips, flip_rate)
            + xlog1py(n - flips, -flip_rate)
        )
        # The most flips against the better side that are still significant; -1 if there are too few flips for any.
        tail = (1 - CONFIDENCE) / 2
        most = np.nan_to_num(np.floor(bdtrik(tail, flips, 0.5)))
        most -= bdtr(most, flips, 0.5) >= tail
        self._flips, self._chance, self._most = flips, chance, most

    def power(self, difference: float) -> float:
        """Return the chance that exact McNemar finds *difference*."""
        import numpy as np
        from scipy.special import bdtr

        flips, most = self._flips, self._most
        towards = (1 + difference / self._rate) / 2
        found = np.where(most >= 0, bdtr(most, flips, 1 - towards) + bdtr(most, flips, towards), 0.0)
        return float(np.sum(self._chance * found))
