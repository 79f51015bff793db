"""Coverage of the intervals in reports and comparisons, and their agreement with the tests shown with them.

    python benchmarks/interval_coverage.py [--quick]

One attempt per case is computed exactly, by adding the probabilities of all outcomes. Several attempts and clusters
are simulated with a fixed seed. Prints a line for each cell: how often the 95 % interval contains the true value, and
its mean width. Exits with 1 if a cell is below 91 %, if the average of a table is below 94 %, or if an interval
contains 0 although its test has p < 0.05, or vice versa. Takes about four minutes; `--quick` has fewer cells and draws.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runs.results.statistics.mean_intervals import mean_estimate
from runs.results.statistics.paired import mcnemar_exact, paired_interval, tango

LEAST_CELL, LEAST_AVERAGE = 0.91, 0.94
RATES = (0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98)
# Chances that a case goes better on one side, and on the other: none, few and many flips.
FLIPS = ((0.0, 0.0), (0.01, 0.01), (0.02, 0.0), (0.05, 0.0), (0.05, 0.02), (0.1, 0.1), (0.3, 0.05), (0.45, 0.3))
NEGLIGIBLE = 1e-9  # outcomes less likely than this are left out of the exact sums

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Table:
    """One kind of interval: its cells, each with what it is, coverage and mean width."""

    title: str
    cells: list[tuple[str, float, float]] = field(default_factory=list)

    def add(self, cell: str, covered: float, width: float) -> None:
        self.cells.append((cell, covered, width))
        print(f"  {cell:<58} {100 * covered:6.1f} %   {width:.3f}", flush=True)

    def problems(self) -> list[str]:
        low = [f"{self.title}: {cell} is covered {100 * x:.2f} %" for cell, x, _ in self.cells if x < LEAST_CELL]
        average = sum(x for _, x, _ in self.cells) / len(self.cells)
        least = min(x for _, x, _ in self.cells)
        print(f"  {len(self.cells)} cells, average {100 * average:.1f} %, least {100 * least:.1f} %\n")
        if average < LEAST_AVERAGE:
            low.append(f"{self.title}: the average coverage is {100 * average:.2f} %")
        return low


def start(title: str) -> Table:
    print(f"{title}\n  {'cell':<58} coverage   width")
    return Table(title)


# ---- one attempt, exactly --------------------------------------------------------------------------------------------


def proportions(sizes: Sequence[int]) -> Table:
    """Accuracy of one attempt: n cases that each pass with chance p."""
    table = start("Accuracy, one attempt (exact)")
    for n in sizes:
        bounds = [_bounds([1.0] * passed + [0.0] * (n - passed)) for passed in range(n + 1)]
        for p in RATES:
            chances = [math.exp(_log_binomial(n, k) + k * math.log(p) + (n - k) * math.log1p(-p)) for k in range(n + 1)]
            covered = sum(c for c, (low, high) in zip(chances, bounds, strict=True) if low <= p <= high)
            width = sum(c * (high - low) for c, (low, high) in zip(chances, bounds, strict=True))
            table.add(f"n {n}, p {p}", covered, width)
    return table


def _bounds(values: list[float]) -> tuple[float, float]:
    found = mean_estimate(values)
    assert found.low is not None and found.high is not None
    return found.low, found.high


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def pairs(sizes: Sequence[int], disagreements: list[str]) -> Table:
    """Difference of one attempt each: n cases that go better on one side with chance f, on the other with chance g."""
    table = start("Paired difference, one attempt (exact)")
    for n in sizes:
        known: dict[tuple[int, int], tuple[float, float]] = {}
        for f, g in FLIPS:
            covered = width = total = 0.0
            for b, c, chance in _outcomes(n, f, g):
                if (b, c) not in known:
                    known[b, c] = _paired_bounds(b, c, n, disagreements)
                low, high = known[b, c]
                covered += chance * (low <= f - g <= high)
                width += chance * (high - low)
                total += chance
            table.add(f"n {n}, better {f}, worse {g}", covered / total, width / total)
    return table


def _paired_bounds(b: int, c: int, n: int, disagreements: list[str]) -> tuple[float, float]:
    found = paired_interval([1.0] * b + [0.0] * (n - b), [0.0] * b + [1.0] * c + [0.0] * (n - b - c))
    assert found is not None
    if (found.p_value < 0.05) == (found.low <= 0 <= found.high):
        disagreements.append(f"{b}:{c} of {n}: p {found.p_value:.4f}, interval [{found.low:.4f}, {found.high:.4f}]")
    return found.low, found.high


def _outcomes(n: int, f: float, g: float) -> Iterator[tuple[int, int, float]]:
    """Yield the numbers of flips each way that are not negligible, with their probability."""
    for b in _likely(n, f):
        for c in _likely(n, g):
            if b + c > n:
                break
            rest = n - b - c
            ways = math.lgamma(n + 1) - math.lgamma(b + 1) - math.lgamma(c + 1) - math.lgamma(rest + 1)
            chance = math.exp(ways + _times_log(b, f) + _times_log(c, g) + _times_log(rest, 1 - f - g))
            if chance > NEGLIGIBLE:
                yield b, c, chance


def _likely(n: int, p: float) -> range:
    spread = 6 * math.sqrt(n * p) + 6 if p else 0.0
    return range(max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread)) + 1)


def _times_log(count: int, p: float) -> float:
    return count * math.log(p) if count else 0.0


# ---- several attempts and clusters, simulated ------------------------------------------------------------------------


def _chances(draw: np.random.Generator, means: Floats, correlation: float) -> Floats:
    """Draw chances of passing about *means* so that two trials of one chance correlate by *correlation*."""
    if correlation == 0:
        return means
    if correlation == 1:
        return (draw.random(means.shape) < means).astype(float)
    scale = (1 - correlation) / correlation
    return draw.beta(np.maximum(means * scale, 1e-9), np.maximum((1 - means) * scale, 1e-9))


@dataclass(frozen=True, slots=True)
class Design:
    """Cases in clusters of up to *size* (1: no clusters), each with *attempts* attempts.

    `cases` and `clusters` are the correlations of two attempts at one case and of two cases of one cluster.
    """

    attempts: int
    size: int
    cases: float
    clusters: float

    def __str__(self) -> str:
        text = f"{self.attempts} attempts r {self.cases}" if self.attempts > 1 else "1 attempt"
        return text if self.size == 1 else f"{text}, clusters of {self.size} r {self.clusters}"

    def names(self, n: int) -> list[int] | None:
        """The cluster of each of *n* cases; the last cluster may be smaller."""
        return None if self.size == 1 else [i // self.size for i in range(n)]

    def case_chances(self, draw: np.random.Generator, n: int, p: float) -> Floats:
        of_clusters = _chances(draw, np.full(-(-n // self.size), p), self.clusters)
        return _chances(draw, np.repeat(of_clusters, self.size)[:n], self.cases)


DESIGNS = (
    Design(attempts=5, size=1, cases=0.0, clusters=0.0),
    Design(attempts=5, size=1, cases=0.3, clusters=0.0),
    Design(attempts=5, size=1, cases=0.8, clusters=0.0),
    Design(attempts=1, size=2, cases=0.0, clusters=0.3),
    Design(attempts=1, size=2, cases=0.0, clusters=0.9),
    Design(attempts=1, size=5, cases=0.0, clusters=0.4),
    Design(attempts=5, size=5, cases=0.4, clusters=0.3),
)


def means(sizes: Sequence[int], draws: int, draw: np.random.Generator) -> Table:
    """Accuracy of several attempts or clusters."""
    table = start("Accuracy, several attempts or clusters (simulated)")
    for n in sizes:
        for p in (0.02, 0.1, 0.5, 0.9, 0.98):
            for design in DESIGNS:
                names = design.names(n)

                def estimate() -> tuple[float, float]:
                    chances = design.case_chances(draw, n, p)  # noqa: B023
                    values = (draw.binomial(design.attempts, chances) / design.attempts).tolist()  # noqa: B023
                    found = mean_estimate(values, names)  # noqa: B023
                    assert found.low is not None and found.high is not None
                    return found.low, found.high

                table.add(f"n {n}, p {p}, {design}", *_simulated(estimate, p, draws))
    return table


def differences(sizes: Sequence[int], draws: int, draw: np.random.Generator, disagreements: list[str]) -> Table:
    """Difference of several attempts or clusters; B always fails a share f of the cases and always passes a share g."""
    table = start("Paired difference, several attempts or clusters (simulated)")
    for n in sizes:
        for p, f, g in ((0.5, 0.0, 0.0), (0.98, 0.02, 0.0), (0.1, 0.1, 0.02), (0.9, 0.3, 0.1)):
            for design in DESIGNS:
                names = design.names(n)

                def estimate() -> tuple[float, float]:
                    a, b = _two_models(draw, design, n, p, f, g)  # noqa: B023
                    found = paired_interval(a, b, names)  # noqa: B023
                    assert found is not None
                    if (found.p_value < 0.05) == (found.low <= 0 <= found.high):
                        disagreements.append(f"n {n}: p {found.p_value}, [{found.low}, {found.high}]")  # noqa: B023
                    return found.low, found.high

                true = p - ((1 - f - g) * p + g)
                table.add(f"n {n}, p {p}, worse {f}, better {g}, {design}", *_simulated(estimate, true, draws))
    return table


def _two_models(
    draw: np.random.Generator, design: Design, n: int, p: float, f: float, g: float
) -> tuple[list[float], list[float]]:
    chances = design.case_chances(draw, n, p)
    changed = draw.random(n)
    other = np.where(changed < f, 0.0, np.where(changed < f + g, 1.0, chances))
    attempts = design.attempts
    if attempts == 1:  # both give the same result unless the case changed
        luck = draw.random(n)
        return (luck < chances).astype(float).tolist(), (luck < other).astype(float).tolist()
    return (draw.binomial(attempts, chances) / attempts).tolist(), (draw.binomial(attempts, other) / attempts).tolist()


def _simulated(estimate: Callable[[], tuple[float, float]], true: float, draws: int) -> tuple[float, float]:
    """Return how often the interval holds *true*, and its mean width."""
    found = np.array([estimate() for _ in range(draws)])
    covered = (found[:, 0] <= true + 1e-12) & (true - 1e-12 <= found[:, 1])
    return float(covered.mean()), float((found[:, 1] - found[:, 0]).mean())


# ---- agreement about zero --------------------------------------------------------------------------------------------


def check_every_result(most: int, disagreements: list[str]) -> None:
    """Compare interval and exact McNemar for every possible result of up to *most* cases."""
    for n in range(1, most + 1):
        for b in range(n + 1):
            for c in range(n - b + 1):
                _paired_bounds(b, c, n, disagreements)
    print(f"Interval and exact McNemar were compared for every result of 1 to {most} cases.")


def check_borders(most: int, disagreements: list[str]) -> None:
    """Check that Tango's interval excludes 0 wherever exact McNemar has p < 0.05, for up to *most* flips.

    Whether it does depends on the flips alone, so the least significant result of each number of flips decides.
    """
    least = 0
    for flips in range(6, most + 1):
        while mcnemar_exact(flips - least - 1, least + 1) < 0.05:
            least += 1
        low, _ = tango(flips - least, least, 2 * flips)
        if low <= 0:
            disagreements.append(f"{flips - least}:{least}: exact p < 0.05, but Tango's interval contains 0")
    print(f"Tango's interval excludes 0 wherever exact McNemar rejects it, up to {most} flips.")


def main(quick: bool) -> int:
    draw = np.random.default_rng(11)
    disagreements: list[str] = []
    sizes: tuple[int, ...] = (10, 50) if quick else (10, 20, 30, 50, 100, 200, 500, 1000)
    draws: Any = 300 if quick else 1500
    tables = [
        proportions(sizes),
        pairs(sizes, disagreements),
        means((10, 50) if quick else (10, 20, 50, 200), draws, draw),
        differences((20,) if quick else (10, 20, 50, 200), draws, draw, disagreements),
    ]
    if not quick:
        tables += [means((1000,), 500, draw), differences((1000,), 500, draw, disagreements)]
    check_every_result(12 if quick else 40, disagreements)
    check_borders(200 if quick else 2000, disagreements)
    problems = [problem for table in tables for problem in table.problems()]
    problems += [f"Interval and test disagree about 0: {item}" for item in disagreements[:20]]
    print("\n".join(problems) or "Every bound holds.")
    return 1 if problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer cells and draws: about ten seconds")
    sys.exit(main(parser.parse_args().quick))
