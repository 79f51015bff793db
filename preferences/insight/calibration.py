"""Calibration of stated confidences. Pure functions; undefined values are None."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_ROUNDING = 1e-9  # error of the mean of two confidences, such as 0.1 and 0.7
ConfidencePoint = tuple[float, bool]  # confidence from 0 to 1, and whether the verdict was correct


@dataclass(frozen=True, slots=True)
class Bin:
    """Bin of verdicts by confidence: mean confidence, share of correct verdicts, and count."""

    confidence: float
    correct: float
    n: int


def calibration(points: Iterable[ConfidencePoint] | Mapping[ConfidencePoint, int], bins: int = 10) -> list[Bin]:
    """Return the non-empty bins of equal width."""
    counts = points if isinstance(points, Mapping) else Counter(points)
    n, confidences, correct = ([0.0] * bins for _ in range(3))
    for (confidence, was_correct), count in counts.items():
        i = min(int(confidence * bins + _ROUNDING), bins - 1)
        n[i] += count
        confidences[i] += confidence * count
        correct[i] += count if was_correct else 0
    return [Bin(confidences[i] / n[i], correct[i] / n[i], int(n[i])) for i in range(bins) if n[i]]


def calibration_error(points: Iterable[ConfidencePoint] | Mapping[ConfidencePoint, int]) -> float | None:
    """Return the expected calibration error: sum over bins of n_b/n |correct_b - confidence_b| (Naeini et al. 2015)."""
    found = calibration(points)
    return sum(b.n * abs(b.correct - b.confidence) for b in found) / sum(b.n for b in found) if found else None
