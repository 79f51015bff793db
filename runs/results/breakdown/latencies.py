"""Distribution of latencies in bins of equal width on a logarithmic scale."""

import math
from collections import Counter

BINS_PER_DECADE = 5


def latency_bin(milliseconds: float) -> int:
    """Return the number of the bin: bin i holds the times from 10^(i/5) to 10^((i+1)/5) milliseconds."""
    return math.floor(BINS_PER_DECADE * math.log10(max(milliseconds, 1.0)) + 1e-9)


def bin_start(number: int) -> float:
    """Return the lower bound of a bin in milliseconds."""
    return float(10 ** (number / BINS_PER_DECADE))


def sorted_bins(counts: Counter[int]) -> dict[int, int]:
    """Return the counts by bin, the shortest times first."""
    return dict(sorted(counts.items()))
