"""Selection and order of the pairs of a run. Pure functions."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

from hub.common.wording import counted

Policy = Literal["all", "agree", "both_pass", "both_fail", "disagree"]
Across = Literal["models", "attempts", "both"]
NO_PAIRS = "no pairs, because no two different answers fit `pairs` and `across` of the config."


@dataclass(frozen=True, slots=True, kw_only=True)
class PairableResponse:
    """Scored response that can be paired with another one, unless their answers are equal.

    Values of `model` sort in the order of the models in the config.
    """

    id: int
    case: int
    model: str
    attempt: int
    passed: bool
    answer_digest: str


@dataclass(frozen=True, slots=True)
class SelectedPair:
    """Two responses, the one of the earlier model or attempt first, and their position in the queue."""

    first: PairableResponse
    second: PairableResponse
    position: int

    @property
    def kind(self) -> str:
        """One of both_pass, both_fail and one_passes."""
        if self.first.passed != self.second.passed:
            return "one_passes"
        return "both_pass" if self.first.passed else "both_fail"


_KINDS: dict[str, tuple[str, ...]] = {
    "all": ("both_pass", "both_fail", "one_passes"),
    "agree": ("both_pass", "both_fail"),
    "both_pass": ("both_pass",),
    "both_fail": ("both_fail",),
    "disagree": ("one_passes",),
}


def select_pairs(
    responses: Iterable[PairableResponse], *, policy: Policy = "all", across: Across = "models", seed: int = 0
) -> list[SelectedPair]:
    """Return all pairs selected by *policy*, in an order drawn from *seed*.

    The first N pairs, for any N, are a random sample of all pairs.
    Across models, attempt i is paired with attempt i. Across attempts, attempts of the same model are paired.
    """
    by_case: dict[int, list[PairableResponse]] = defaultdict(list)
    for response in responses:
        by_case[response.case].append(response)
    found = [
        pair
        for group in by_case.values()
        for a, b in _comparable_pairs(sorted(group, key=lambda c: (c.model, c.attempt)), across)
        if a.answer_digest != b.answer_digest
        and (pair := SelectedPair(a, b, _sort_position(seed, a, b))).kind in _KINDS[policy]
    ]
    return sorted(found, key=lambda pair: (pair.position, pair.first.id, pair.second.id))


def max_pair_count(models: int, attempts: int, cases: int, across: Across) -> int:
    """Return the largest number of pairs that the responses of a run can form, for estimates."""
    between = comb(models, 2) * attempts
    within = models * comb(attempts, 2)
    return cases * {"models": between, "attempts": within, "both": between + within}[across]


def at_most(pairs: int, details: str) -> str:
    """Return the words of an estimate about the number of pairs, with the reason if there can be none."""
    if not pairs:
        return "no pairs, because `across: models` needs two models, and `across: attempts` two attempts."
    return f"up to {counted(pairs, 'pair')}, {details}."


def _comparable_pairs(
    group: list[PairableResponse], across: Across
) -> Iterator[tuple[PairableResponse, PairableResponse]]:
    for a, b in combinations(group, 2):
        same_model = a.model == b.model
        if (same_model and across != "models") or (not same_model and a.attempt == b.attempt and across != "attempts"):
            yield a, b


def _sort_position(seed: int, a: PairableResponse, b: PairableResponse) -> int:
    """Return a 62-bit number that depends only on the seed and the pair, not on other pairs of the run."""
    raw = hashlib.sha256(f"{seed}/{a.case}/{a.model}#{a.attempt}/{b.model}#{b.attempt}".encode()).digest()
    return int.from_bytes(raw[:8], "big") >> 2
