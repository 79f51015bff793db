"""Ranking models from preferences: Bradley-Terry strengths with bootstrap intervals. Pure.

P(i beats j) = s_i / (s_i + s_j), fitted by Hunter's MM algorithm (2004). A tie is half a win for each side. Strengths
are shown on the Elo scale, 400 log10(s), centred on 0: 100 points are odds of about 1.8 to 1.
"""

import math
import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_SCALE = 400 / math.log(10)
_PRIOR = 0.5  # wins each way between every two that met: keeps the strength of who never lost finite
_ROUNDS, _CLOSE = 500, 1e-7


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


def strengths(matches: Sequence[Match]) -> dict[str, float]:
    """Each name's strength in Elo points, centred on 0; {} without matches."""
    met: dict[tuple[str, str], float] = defaultdict(float)
    won: dict[str, float] = defaultdict(float)
    for match in matches:
        pair = (match.a, match.b) if match.a < match.b else (match.b, match.a)
        met[pair] += 1
        won[match.a] += match.score
        won[match.b] += 1 - match.score
    for a, b in met:
        met[a, b] += 2 * _PRIOR
        won[a] += _PRIOR
        won[b] += _PRIOR
    names = sorted(won)
    current = dict.fromkeys(names, 1.0)
    for _ in range(_ROUNDS):
        weight: dict[str, float] = defaultdict(float)
        for (a, b), count in met.items():
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
    best = strengths(matches)
    by_case: dict[Hashable, list[Match]] = defaultdict(list)
    for match in matches:
        by_case[match.case].append(match)
    groups = list(by_case.values())
    drawn: dict[str, list[float]] = defaultdict(list)
    if len(groups) >= 10:
        draw = random.Random(seed)  # noqa: S311 - the same interval on every visit, not a secret
        for _ in range(resamples):
            sample = [match for group in draw.choices(groups, k=len(groups)) for match in group]
            for name, value in strengths(sample).items():
                drawn[name].append(value)
    rows = [_standing(name, value, matches, sorted(drawn[name])) for name, value in best.items()]
    return sorted(rows, key=lambda row: (-row.strength, row.name))


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
