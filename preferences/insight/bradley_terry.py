"""Ranking models from preferences: Bradley-Terry strengths with intervals. Pure functions.

P(i beats j) = s_i / (s_i + s_j), fitted by Newton's method. A tie is half a win for each side. Strengths are shown on
the Elo scale, 400 log10(s), centred on 0: 100 points are odds of about 1.8 to 1.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Places = NDArray[intp]

RESAMPLES = 1000
_SCALE = 400 / math.log(10)
_PRIOR = 0.5  # wins for each side between every two compared models: keeps strengths finite, as in Jeffreys' prior
# In intervals the prior weighs more: with 1/2 the interval of two models covers as little as 87 % (10 cases, p = 0.22).
_INTERVAL_PRIOR = 0.75
_ITERATIONS = 500
_CLOSE = 1e-12  # square of the last step in standard errors; rounding alone makes up to 1e-13 of it
_CASES = 10  # minimum number of cases for an interval
_BATCH = 2_000_000  # numbers in memory at a time while resamples are fitted


@dataclass(frozen=True, slots=True)
class Match:
    """Comparison of two models. `score` is 1 if *a* won, 0 if *b* won, 0.5 for a tie; cases are resampled."""

    a: str
    b: str
    score: float
    case: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedModel:
    """Strength of a model with its interval (None: too few cases), wins and number of comparisons."""

    name: str
    strength: float
    low: float | None
    high: float | None
    wins: float
    matches: int


class SeparateGroups(ValueError):
    """No chain of comparisons connects all models, so they have no common scale. `groups` holds their names."""

    def __init__(self, groups: list[list[str]]) -> None:
        self.groups = groups
        named = "; ".join(", ".join(group) for group in groups)
        super().__init__(
            f"These {len(groups)} groups of models cannot be ranked together, because no comparison connects them: "
            f"{named}. Compare a model of one group with a model of another, or filter to one group's run."
        )


def groups_of(matches: Sequence[Match]) -> list[list[str]]:
    """Return the names that chains of comparisons connect, each group sorted, the largest group first."""
    group: dict[str, list[str]] = {}
    for match in matches:
        left, right = group.setdefault(match.a, [match.a]), group.setdefault(match.b, [match.b])
        if left is not right:
            left += right
            for name in right:
                group[name] = left
    separate = {id(names): sorted(names) for names in group.values()}
    return sorted(separate.values(), key=lambda names: (-len(names), names))


def strengths(matches: Sequence[Match]) -> dict[str, float]:
    """Return each name's strength in Elo points, centred on 0; {} without matches. Raises SeparateGroups."""
    if not matches:
        return {}
    import numpy as np  # slow to import, and needed by few commands

    table = _Table(matches)
    (fitted,) = table.fit(np.ones((1, table.cases)), np.full((2, 1, table.pairs), _PRIOR))
    return dict(zip(table.names, fitted.tolist(), strict=True))


def rank_models(matches: Sequence[Match], *, resamples: int = RESAMPLES, seed: int = 0) -> list[RankedModel]:
    """Return all models, the strongest first, with 95 % intervals if there are ten cases. Raises SeparateGroups.

    The intervals are percentiles of Rubin's Bayesian bootstrap (1981) over cases: each resample weights every case by a
    standard exponential variable, and gives each prior win the weight of a Gamma(3/4) variable. For two models with one
    comparison for each case and no ties this is the interval of Beta(wins + 3/4, losses + 3/4), which has a width also
    if one of them always won.
    """
    found = strengths(matches)
    low, high = _bounds(matches, resamples, seed) if found else ({}, {})
    rows = [_ranked_model(name, value, matches, low.get(name), high.get(name)) for name, value in found.items()]
    return sorted(rows, key=lambda row: (-row.strength, row.name))


def _bounds(matches: Sequence[Match], resamples: int, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the lower and the upper bounds by name; none for fewer than ten cases."""
    import numpy as np

    table = _Table(matches)
    if table.cases < _CASES:
        return {}, {}
    draw = np.random.default_rng(seed)
    at_once = max(1, _BATCH // (table.pairs * len(table.names) + len(matches)))
    fitted = []
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        prior = np.maximum(draw.standard_gamma(_INTERVAL_PRIOR, (2, size, table.pairs)), 1e-9)
        fitted.append(table.fit(draw.standard_exponential((size, table.cases)), prior))
    low, high = np.quantile(np.concatenate(fitted), [0.025, 0.975], axis=0).tolist()
    return dict(zip(table.names, low, strict=True)), dict(zip(table.names, high, strict=True))


class _Table:
    """Comparisons as arrays: models, scores and cases."""

    def __init__(self, matches: Sequence[Match]) -> None:
        import numpy as np

        groups = groups_of(matches)
        if len(groups) > 1:
            raise SeparateGroups(groups)
        self.names = groups[0]
        places = {name: i for i, name in enumerate(self.names)}
        met = sorted({(min(m.a, m.b), max(m.a, m.b)) for m in matches})
        pair_places = {pair: i for i, pair in enumerate(met)}
        case_places = {case: i for i, case in enumerate(dict.fromkeys(m.case for m in matches))}
        self.pairs, self.cases = len(met), len(case_places)
        self._pair: Places = np.array([pair_places[min(m.a, m.b), max(m.a, m.b)] for m in matches])
        self._case: Places = np.array([case_places[m.case] for m in matches])
        self._score: Floats = np.array([m.score if m.a < m.b else 1 - m.score for m in matches], dtype=float)
        self._sides: Floats = np.zeros((self.pairs, len(self.names)))  # +1 and -1 for the two models of each pair
        for i, (a, b) in enumerate(met):
            self._sides[i, places[a]], self._sides[i, places[b]] = 1.0, -1.0

    def fit(self, case_weights: "Floats", prior: "Floats") -> "Floats":
        """Return the strengths of greatest likelihood, a row for each row of *case_weights*.

        *prior* holds, for each row and pair, the wins to add for the first and for the second model.
        """
        import numpy as np

        weights = case_weights[:, self._case]
        won, met = prior[0].copy(), prior[0] + prior[1]
        for row in range(len(weights)):
            won[row] += np.bincount(self._pair, weights[row] * self._score, self.pairs)
            met[row] += np.bincount(self._pair, weights[row], self.pairs)
        return _SCALE * _newton(won, met, self._sides)


def _newton(won: "Floats", met: "Floats", sides: "Floats") -> "Floats":
    """Return log strengths that sum to 0, by damped Newton's method on the concave log-likelihood.

    A step is divided by 1 + the largest change of a pair's log-odds, which makes the method converge from everywhere.
    Raises ArithmeticError if it does not.
    """
    import numpy as np

    logs = np.zeros((len(won), sides.shape[1]))
    for _ in range(_ITERATIONS):
        chance = 1 / (1 + np.exp(-(logs @ sides.T)))
        gradient = (won - met * chance) @ sides
        curvature = ((met * chance * (1 - chance))[:, None, :] * sides.T) @ sides
        # Strengths are known up to a common constant; the ones fix their sum at 0.
        step = np.linalg.solve(curvature + 1.0, gradient[:, :, None])[:, :, 0]
        logs += step / (1 + np.abs(step @ sides.T).max(axis=1, keepdims=True))
        # Not the size of the step: where the likelihood is flat, rounding errors alone move strengths by 1e-6.
        if (gradient * step).sum(axis=1).max() < _CLOSE:
            centred: Floats = logs - logs.mean(axis=1, keepdims=True)
            return centred
    raise ArithmeticError(f"Newton's method did not converge in {_ITERATIONS} steps.")


def _ranked_model(
    name: str, value: float, matches: Sequence[Match], low: float | None, high: float | None
) -> RankedModel:
    return RankedModel(
        name=name,
        strength=value,
        low=low,
        high=high,
        wins=math.fsum(m.score if m.a == name else 1 - m.score for m in matches if name in (m.a, m.b)),
        matches=sum(name in (m.a, m.b) for m in matches),
    )
