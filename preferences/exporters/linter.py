"""What may not go into training data, and why; what the rest looks like. Pure but for the rows it is given."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from preferences.agreement import correlation
from preferences.exporters.base import completion_of
from preferences.models import Preference

MAX_FALSE_ACCEPTS = 0.25  # of a reviewer's attention checks; above it nothing of theirs is exported
HUMAN, EXECUTION = Preference.Source.HUMAN, Preference.Source.EXECUTION

HELD_OUT = "of a held-out environment"
IDENTICAL = "identical sides"
INATTENTIVE = "of a reviewer who accepted wrong suggestions seeded as checks"
AGAINST_TESTS = "contradicts execution, and no defect of the tests was filed"
OUTRANKED = "the same pair has a person's verdict"
DISAGREE = "verdicts on the same pair contradict each other"
REPEATED = "another preference says the same"
CYCLE = "part of a cycle (A over B over C over A)"


@dataclass(slots=True)
class Linted:
    """What may be exported, the ties apart, and how many were dropped, by why."""

    kept: list[Preference] = field(default_factory=list)
    ties: list[Preference] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Counts, side balance and length correlation of what is kept."""
        decisive = [p for p in self.kept if p.decisive]
        return {
            "kept": len(self.kept),
            "ties": len(self.ties),
            "dropped": dict(self.dropped),
            "first_chosen": sum(p.verdict == "first" for p in decisive) / len(decisive) if decisive else None,
            "length_correlation": correlation(
                [(float(_size(p, "first") - _size(p, "second")), float(p.verdict == "first")) for p in decisive]
            ),
        }


def _size(preference: Preference, side: str) -> int:
    return len(getattr(preference, side).text)


def lint(preferences: Sequence[Preference], false_accepts: dict[int, float]) -> Linted:
    """Sort *preferences*. *false_accepts*: reviewer id -> the share of their attention checks that they failed."""
    result = Linted()
    pairs: dict[frozenset[int], list[Preference]] = defaultdict(list)
    for preference in preferences:
        why = _unfit(preference, false_accepts)
        if why:
            result.dropped[why] += 1
        else:
            pairs[frozenset((preference.first_id, preference.second_id))].append(preference)
    survivors = [kept for group in pairs.values() if (kept := _one_of(group, result.dropped)) is not None]
    cyclic = _cyclic([p for p in survivors if p.decisive])
    for preference in sorted(survivors, key=lambda p: p.pk):
        if preference.pk in cyclic:
            result.dropped[CYCLE] += 1
        elif preference.decisive:
            result.kept.append(preference)
        else:
            result.ties.append(preference)
    return result


def _unfit(preference: Preference, false_accepts: dict[int, float]) -> str:
    """Why *preference* by itself may not be exported; empty where it may."""
    if preference.version.environment.held_out:
        return HELD_OUT
    if completion_of(preference.first) == completion_of(preference.second):
        return IDENTICAL
    failed = preference.check_result == Preference.Check.FAILED
    if failed or false_accepts.get(preference.reviewer_id or 0, 0.0) > MAX_FALSE_ACCEPTS:
        return INATTENTIVE
    right = preference.evidence.get("winner")
    if right and preference.verdict != right and not preference.disputes_tests:
        return AGAINST_TESTS
    return ""


def _one_of(group: list[Preference], dropped: Counter[str]) -> Preference | None:
    """The one preference that stands for a pair; people outrank execution, which outranks judges."""
    for source in (HUMAN, EXECUTION):
        if any(p.source == source for p in group):
            others = [p for p in group if p.source != source]
            dropped[OUTRANKED if source == HUMAN else REPEATED] += len(others)
            group = [p for p in group if p.source == source]
            break
    if len({_meaning(p) for p in group}) > 1:
        dropped[DISAGREE] += len(group)
        return None
    dropped[REPEATED] += len(group) - 1
    dropped += Counter()  # forget what counted nothing
    return min(group, key=lambda p: p.pk)


def _meaning(preference: Preference) -> object:
    """What it says whichever response comes first."""
    return preference.chosen.pk if preference.chosen is not None else preference.verdict


def _cyclic(preferences: Sequence[Preference]) -> set[int]:
    """Ids of preferences that lie on a cycle: chosen and rejected reach each other (strongly connected, Kosaraju)."""
    forward: dict[int, list[int]] = defaultdict(list)
    backward: dict[int, list[int]] = defaultdict(list)
    edges = [(p.pk, *_edge(p)) for p in preferences]
    for _, better, worse in edges:
        forward[better].append(worse)
        backward[worse].append(better)
    order: list[int] = []
    seen: set[int] = set()
    for start in list(forward):
        _visit(start, forward, seen, order)
    component: dict[int, int] = {}
    seen = set()
    for start in reversed(order):
        if start not in seen:
            members: list[int] = []
            _visit(start, backward, seen, members)
            component.update(dict.fromkeys(members, start))
    return {pk for pk, better, worse in edges if component[better] == component[worse]}


def _edge(preference: Preference) -> tuple[int, int]:
    if preference.verdict == Preference.Verdict.FIRST:
        return preference.first_id, preference.second_id
    return preference.second_id, preference.first_id


def _visit(start: int, edges: dict[int, list[int]], seen: set[int], order: list[int]) -> None:
    """Append every node reached from *start* to *order*, each after all that it leads to."""
    if start in seen:
        return
    seen.add(start)
    stack = [(start, iter(edges.get(start, ())))]
    while stack:
        node, following = stack[-1]
        for other in following:
            if other not in seen:
                seen.add(other)
                stack.append((other, iter(edges.get(other, ()))))
                break
        else:
            order.append(node)
            stack.pop()
