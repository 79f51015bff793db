"""Which responses form pairs, and in which order they are judged. Pure."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

Policy = Literal["all", "agree", "both_pass", "both_fail", "disagree"]
Across = Literal["models", "attempts", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A scored response as pairing sees it. `text` is a digest: equal ones say the same and are not compared."""

    id: int
    case: int
    model: str
    attempt: int
    passed: bool
    text: str


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two responses, the earlier model or attempt first, and their place in the order of judging."""

    first: Candidate
    second: Candidate
    position: int

    @property
    def kind(self) -> str:
        """both_pass, both_fail or one_passes"""
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
    candidates: Iterable[Candidate], *, policy: Policy = "all", across: Across = "models", seed: int = 0
) -> list[CandidatePair]:
    """Every pair that *policy* wants, in an order drawn by *seed*. The first N of it are a fair sample of N.

    Across models, attempt i meets attempt i; across attempts, a model meets itself.
    """
    by_case: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_case[candidate.case].append(candidate)
    found = [
        pair
        for group in by_case.values()
        for a, b in _comparable_pairs(sorted(group, key=lambda c: (c.model, c.attempt)), across)
        if a.text != b.text and (pair := CandidatePair(a, b, _sort_position(seed, a, b))).kind in _KINDS[policy]
    ]
    return sorted(found, key=lambda pair: (pair.position, pair.first.id, pair.second.id))


def _comparable_pairs(group: list[Candidate], across: Across) -> Iterator[tuple[Candidate, Candidate]]:
    for a, b in combinations(group, 2):
        same_model = a.model == b.model
        if (same_model and across != "models") or (not same_model and a.attempt == b.attempt and across != "attempts"):
            yield a, b


def _sort_position(seed: int, a: Candidate, b: Candidate) -> int:
    """A number of 62 bits that depends on the seed and the pair alone: what else a run holds moves no pair."""
    raw = hashlib.sha256(f"{seed}/{a.case}/{a.model}#{a.attempt}/{b.model}#{b.attempt}".encode()).digest()
    return int.from_bytes(raw[:8], "big") >> 2
