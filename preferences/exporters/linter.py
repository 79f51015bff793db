"""Linter of exports: leaves out preferences unfit for training and reports why. It reads digests, not texts."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import comb
from typing import NamedTuple, TypedDict

from hub.models import CaseDefect
from preferences.insight.agreement_statistics import correlation
from preferences.models import Preference
from preferences.precedence import precedence_of, with_highest_precedence

MAX_FALSE_ACCEPTS = 0.25  # the share of attention checks that a careful reviewer may fail
_BY_CHANCE = 0.05  # failures that a careful reviewer has with a lower probability are not taken for chance
Checks = tuple[int, int]  # failed and total attention checks of a reviewer
Pair = tuple[int, int]  # numbers of two answers, the smaller one first
HUMAN, LLM, EXECUTION = Preference.Source.HUMAN, Preference.Source.LLM, Preference.Source.EXECUTION

HELD_OUT = "of a held-out environment"
IDENTICAL = "identical sides"
INATTENTIVE = "of a reviewer who accepted wrong suggestions of attention checks"
AGAINST_TESTS = "contradicts execution, and no defect of the tests was filed"
DEFECT_REJECTED = "contradicts execution, and the defect report about the tests was rejected"
DEFECT_OPEN = "of a pair whose tests are disputed by an open defect report"
WRONG_TESTS = "rests on tests that were found wrong"
OUTRANKED = "the same pair has a person's verdict"
OUTRANKED_BY_TESTS = "the same pair has another verdict of execution"
DISAGREE = "verdicts on the same pair contradict each other"
REPEATED = "another preference has the same verdict on the same answers"
CYCLE = "part of a cycle (A over B over C over A)"


class LinterRow(NamedTuple):
    """What the linter reads of a preference, as `_read_for_linter` in export.py selects it.

    `winner` is the side that execution decides for, if any. `defect_status` is that of the report on which an
    overruling verdict is based.
    """

    pk: int
    source: str
    verdict: str
    reviewer: int | None
    check_result: str
    first_digest: str
    second_digest: str
    same_answer: bool
    longer: int
    environment_held_out: bool
    case_held_out: bool
    winner: str | None
    saw_evidence: bool
    disputes_tests: bool
    defect_status: str | None
    tests_found_wrong: bool


class LintedVerdict(NamedTuple):
    """Verdict of a preference on two answers, each identified by a number.

    Two responses with the same prompt and the same answer are the same answer, whichever model or run they are from.
    `longer` is by how many characters the first answer is longer.
    """

    pk: int
    first: int
    second: int
    source: str
    verdict: str
    longer: int

    @property
    def pair(self) -> Pair:
        """The two answers, independent of the order of the responses."""
        return (min(self.first, self.second), max(self.first, self.second))

    @property
    def decisive(self) -> bool:
        return self.verdict in (Preference.Verdict.FIRST, Preference.Verdict.SECOND)

    @property
    def better_and_worse(self) -> tuple[int, int]:
        """The better and the worse answer of a decisive verdict."""
        return (self.first, self.second) if self.verdict == Preference.Verdict.FIRST else (self.second, self.first)

    @property
    def meaning(self) -> object:
        """The verdict, independent of the order of the responses."""
        return self.better_and_worse if self.decisive else self.verdict


class LintFigures(TypedDict):
    """Figures of a LintResult. Shares and correlations are None if there is nothing to compute them from."""

    ties: int
    first_chosen: float | None
    length_correlation: float | None


@dataclass(slots=True)
class LintResult:
    """Result of the linter: verdicts to export, ties, and the number of dropped preferences by reason."""

    found: int = 0
    kept: list[LintedVerdict] = field(default_factory=list)
    ties: list[LintedVerdict] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def figures(self, written: Set[int]) -> LintFigures:
        """Return the number of ties, and side balance and length correlation of the preferences that were *written*."""
        decisive = [verdict for verdict in self.kept if verdict.decisive and verdict.pk in written]
        return {
            "ties": len(self.ties),
            "first_chosen": sum(item.verdict == "first" for item in decisive) / len(decisive) if decisive else None,
            "length_correlation": correlation(
                [(float(item.longer), float(item.verdict == "first")) for item in decisive]
            ),
        }


def is_careless(failed: int, checks: int) -> bool:
    """Return whether a reviewer fails more than MAX_FALSE_ACCEPTS of the checks, beyond chance.

    The test is a one-sided exact binomial test at 5 %.

    One or two failed checks never suffice; three of three do, four of five, six of ten.
    """
    p = MAX_FALSE_ACCEPTS
    tail = sum(comb(checks, k) * p**k * (1 - p) ** (checks - k) for k in range(failed, checks + 1))
    return tail < _BY_CHANCE


def lint(
    rows: Iterable[LinterRow],
    checks: Mapping[int, Checks],
    disputing: Iterable[LinterRow] = (),
    others: Iterable[LinterRow] = (),
) -> LintResult:
    """Lint preferences. *checks* maps reviewer ids to failed and total attention checks.

    *disputing* are verdicts with an open report about the tests. They also count if they are not among *rows*.
    *others* are verdicts that are not exported but can contradict *rows*, because filters leave them out.
    """
    careless = {reviewer for reviewer, met in checks.items() if is_careless(*met)}
    numbers: dict[bytes, int] = {}  # of the answers, by digest
    # Whether the tests are right is unknown until a curator has decided.
    disputed = {_read_verdict(row, numbers).pair for row in disputing if _unfit(row, careless) == DEFECT_OPEN}
    result = LintResult()
    exported: dict[Pair, list[LintedVerdict]] = defaultdict(list)
    for row in rows:
        result.found += 1
        verdict = _read_verdict(row, numbers)
        why = _unfit(row, careless) or (DEFECT_OPEN if verdict.pair in disputed else "")
        if why:
            result.dropped[why] += 1
        else:
            exported[verdict.pair].append(verdict)
    filtered: dict[Pair, list[LintedVerdict]] = defaultdict(list)
    for row in others:
        verdict = _read_verdict(row, numbers)
        if verdict.pair in exported and not _unfit(row, careless):
            filtered[verdict.pair].append(verdict)
    representatives = [
        kept
        for pair, group in exported.items()
        if (kept := _one_of(group, filtered.get(pair, []), result.dropped)) is not None
    ]
    cyclic = _cyclic([verdict for verdict in representatives if verdict.decisive])
    for verdict in sorted(representatives):
        if verdict.pk in cyclic:
            result.dropped[CYCLE] += 1
        elif verdict.decisive:
            result.kept.append(verdict)
        else:
            result.ties.append(verdict)
    return result


def _read_verdict(row: LinterRow, numbers: dict[bytes, int]) -> LintedVerdict:
    """Return the verdict of *row*. Answers that are not in *numbers* are added with the next number."""
    # Half of a digest takes a third of the memory of its text, and no two are equal by chance.
    digests = (bytes.fromhex(digest[:32]) for digest in (row.first_digest, row.second_digest))
    first, second = (numbers.setdefault(digest, len(numbers)) for digest in digests)
    # Interned, because this is kept in memory and only few sources and verdicts exist.
    return LintedVerdict(row.pk, first, second, sys.intern(row.source), sys.intern(row.verdict), row.longer)


def _unfit(row: LinterRow, careless: Set[int]) -> str:
    """Return why the preference on its own may not be exported, or ""."""
    if row.environment_held_out or row.case_held_out:
        return HELD_OUT
    if row.same_answer:
        return IDENTICAL
    # A check shows a verdict that contradicts the tests. If the tests are wrong, accepting it was no mistake.
    failed = row.check_result == Preference.Check.FAILED and not row.tests_found_wrong
    if failed or row.reviewer in careless:
        return INATTENTIVE
    return _against_tests(row)


def _against_tests(row: LinterRow) -> str:
    """Return why the preference may not be exported given the test results and the state of reported defects, or ""."""
    if row.tests_found_wrong:
        rests_on_them = row.source == EXECUTION or (row.source == LLM and row.saw_evidence)
        return WRONG_TESTS if rests_on_them else ""
    if not row.winner or row.verdict == row.winner:
        return ""
    if not row.disputes_tests or row.defect_status is None:
        return AGAINST_TESTS
    return DEFECT_OPEN if row.defect_status == CaseDefect.Status.OPEN else DEFECT_REJECTED


def _one_of(group: list[LintedVerdict], others: list[LintedVerdict], dropped: Counter[str]) -> LintedVerdict | None:
    """Return the verdict of *group* that represents a pair, or None if verdicts contradict each other.

    Reviewers take precedence over execution, execution over judges. Of *others*, which are not exported themselves,
    those contradict the verdict that have its precedence or a higher one.
    """
    highest = with_highest_precedence(group)
    source, rank = highest[0].source, precedence_of(highest[0])
    meanings = {verdict.meaning for verdict in highest}
    for verdict in group:
        if verdict.source != source:
            repeated = REPEATED if verdict.meaning in meanings else OUTRANKED_BY_TESTS
            dropped[OUTRANKED if source == HUMAN else repeated] += 1
    meanings |= {verdict.meaning for verdict in others if precedence_of(verdict) <= rank}
    if len(meanings) > 1:
        dropped[DISAGREE] += len(highest)
        return None
    if len(highest) > 1:
        dropped[REPEATED] += len(highest) - 1
    return min(highest)


def _cyclic(verdicts: Sequence[LintedVerdict]) -> set[int]:
    """Return the ids of verdicts on a cycle, whose answers are strongly connected (Kosaraju's algorithm)."""
    forward: dict[int, list[int]] = defaultdict(list)
    backward: dict[int, list[int]] = defaultdict(list)
    # Every answer on a cycle has won and lost. Few answers have, so few edges are kept in memory.
    won, lost = set(), set()
    for verdict in verdicts:
        better, worse = verdict.better_and_worse
        won.add(better)
        lost.add(worse)
    won &= lost
    edges = [
        (verdict.pk, *verdict.better_and_worse) for verdict in verdicts if won.issuperset(verdict.better_and_worse)
    ]
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


def _visit(start: int, edges: dict[int, list[int]], seen: set[int], order: list[int]) -> None:
    """Append the nodes reachable from *start* to *order* in postorder."""
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
