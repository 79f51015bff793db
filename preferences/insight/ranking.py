"""Ranking models from preferences: Bradley-Terry strengths with bootstrap intervals. Pure.

P(i beats j) = s_i / (s_i + s_j), fitted by Hunter's MM algorithm (2004). A tie is half a win for each side. Strengths
are shown on the Elo scale, 400 log10(s), centred on 0: 100 points are odds of about 1.8 to 1.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_SCALE = 400 / math.log(10)
_PRIOR = 0.5  # wins each way between every two that met: keeps the strength of who never lost finite
_ROUNDS, _CLOSE = 500, 1e-7
_CASES = 10  # fewer say too little of how they vary


@dataclass(frozen=True, slots=True)
class Match:
    """One comparison. `score` is 1 where *a* won, 0 where *b* did, 0.5 for a tie; `case` is what is resampled."""

    a: str
    b: str
    score: float
    case: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A model's strength with its interval (None: too few cases), and what it rests on."""

    name: str
    strength: float
    low: float | None
    high: float | None
    wins: float
    matches: int


Names = tuple[str, str]  # of two that met, in the order of the alphabet
Met = Mapping[Names, tuple[float, float]]  # how often they met, and how often the first one won


def strengths(matches: Iterable[Match]) -> dict[str, float]:
    """Each name's strength in Elo points, centred on 0; {} without matches."""
    return _fitted(_met(matches))


def _met(matches: Iterable[Match]) -> dict[Names, tuple[float, float]]:
    met: dict[Names, tuple[float, float]] = {}
    for match in matches:
        names, score = ((match.a, match.b), match.score) if match.a < match.b else ((match.b, match.a), 1 - match.score)
        count, won = met.get(names, (0.0, 0.0))
        met[names] = count + 1, won + score
    return met


def _fitted(met: Met) -> dict[str, float]:
    counts: dict[Names, float] = {}
    won: dict[str, float] = defaultdict(float)
    for (a, b), (count, score) in met.items():
        counts[a, b] = count + 2 * _PRIOR
        won[a] += score + _PRIOR
        won[b] += count - score + _PRIOR
    names = sorted(won)
    current = dict.fromkeys(names, 1.0)
    for _ in range(_ROUNDS):
        weight: dict[str, float] = defaultdict(float)
        for (a, b), count in counts.items():
            share = count / (current[a] + current[b])
            weight[a] += share
            weight[b] += share
        new = {name: won[name] / weight[name] for name in names}
        centre = math.exp(math.fsum(math.log(value) for value in new.values()) / len(names)) if names else 1.0
        new = {name: value / centre for name, value in new.items()}
        moved = max((abs(math.log(new[name] / current[name])) for name in names), default=0.0)
        current = new
        if moved < _CLOSE:
            break
    return {name: _SCALE * math.log(value) for name, value in current.items()}


def standings(matches: Sequence[Match], *, resamples: int = 200, seed: int = 0) -> list[Standing]:
    """Every name, the strongest first, with 95 % intervals by bootstrap over cases (ten cases at least)."""
    drawn: dict[str, list[float]] = defaultdict(list)
    for met in _resampled(matches, resamples, seed):
        for name, value in _fitted(met).items():
            drawn[name].append(value)
    rows = [_standing(name, value, matches, sorted(drawn[name])) for name, value in strengths(matches).items()]
    return sorted(rows, key=lambda row: (-row.strength, row.name))


def _resampled(matches: Sequence[Match], resamples: int, seed: int) -> Iterator[Met]:
    """What was met in as many cases again, drawn with replacement; nothing where there are fewer than ten cases."""
    by_case: dict[Hashable, list[Match]] = defaultdict(list)
    for match in matches:
        by_case[match.case].append(match)
    if len(by_case) < _CASES:
        return
    import numpy as np  # slow to import, and needed by few commands

    place = {names: i for i, names in enumerate(_met(matches))}
    table = np.zeros((len(by_case), len(place), 2))
    for row, found in zip(table, by_case.values(), strict=True):
        for names, both in _met(found).items():
            row[place[names]] = both
    draw = np.random.default_rng(seed)
    for _ in range(resamples):
        times = np.bincount(draw.integers(0, len(table), len(table)), minlength=len(table))
        sums = np.tensordot(times, table, axes=1).tolist()
        yield {names: (count, won) for names, (count, won) in zip(place, sums, strict=True) if count}


def _standing(name: str, value: float, matches: Sequence[Match], drawn: list[float]) -> Standing:
    wins = math.fsum(m.score if m.a == name else 1 - m.score for m in matches if name in (m.a, m.b))
    return Standing(
        name=name,
        strength=value,
        low=drawn[int(0.025 * len(drawn))] if drawn else None,
        high=drawn[min(int(0.975 * len(drawn)), len(drawn) - 1)] if drawn else None,
        wins=wins,
        matches=sum(name in (m.a, m.b) for m in matches),
    )
