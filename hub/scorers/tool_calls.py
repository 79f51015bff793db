"""The rule `tool_calls`: the model made the expected calls."""

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import field_validator

from hub.harnesses.base import Services
from hub.harnesses.steps.tool_calls import ParsedCall, native_calls, text_calls
from hub.protocols.messages import JSON, Message
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.comparison.expected_calls import Expected, composed, expected

MAX_CALLS = 1000  # of an episode; matching is quadratic


class ToolCallsOptions(ScorerOptions):
    """`expect`: the calls, as {name, arguments, …}, as {any_of: [calls]}, or in the Berkeley leaderboard's notation.

    `order`: `any`, or `strict` as listed. `extra`: whether further calls are a mistake (`forbid`) or not (`allow`).
    `strings: folded` ignores case, spaces and punctuation in texts. `partial`: score the share of calls that
    are right, rather than all or nothing.
    """

    expect: object = "{{ target }}"
    order: Literal["any", "strict"] = "any"
    extra: Literal["forbid", "allow"] = "forbid"
    strings: Literal["exact", "folded"] = "exact"
    partial: bool = False

    @field_validator("expect")
    @classmethod
    def _means_calls(cls, value: object) -> object:
        expected(value)
        return value


class ToolCalls(Scorer[ToolCallsOptions]):
    """Compares parsed structure, number by value; a call whose arguments are not one JSON object is never right."""

    type = "tool_calls"
    summary = "The model made the calls that it should have made."
    Options = ToolCallsOptions

    async def score(self, options: ToolCallsOptions, submission: Submission, services: Services) -> Verdict:
        wanted = expected(options.expect)
        made = [call for message in submission.response_messages for call in _calls(message)]
        if problem := text_calls(submission.text)[1]:
            # The model could correct earlier blocks that cannot be read, but not one in its last message.
            made.append(ParsedCall(id="", name="", arguments={}, problem=problem))
        detail: dict[str, JSON] = {"calls": [_plain(call) for call in made[:50]], "made": len(made)}
        if len(made) > MAX_CALLS:
            return Verdict.of(False, f"{len(made)} calls were made; more than {MAX_CALLS} are not compared.", **detail)
        made = list(map(composed, made))
        folded = options.strings == "folded"
        pairs = (in_order if options.order == "strict" else in_any_order)(wanted, made, folded=folded)
        reason = _problem(options, wanted, made, pairs)
        if not reason:
            return Verdict(value=1.0, reason=_describe_success(len(wanted)), detail=detail)
        counted = max(len(wanted), len(made)) if options.extra == "forbid" else len(wanted)
        value = len(pairs) / counted if options.partial and counted else 0.0
        return Verdict(value=value, reason=reason, detail={**detail, "right": len(pairs), "expected": len(wanted)})


def _calls(message: Message) -> list[ParsedCall]:
    return native_calls(message) if message.get("role") == "assistant" else []


def _plain(call: ParsedCall) -> dict[str, JSON]:
    """Return a call as a report shows it.

    Arguments are text, because a model may write NaN, which JSON columns reject.
    """
    shown: dict[str, JSON] = {
        "name": call.name,
        "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)[:2000],
    }
    return {**shown, "problem": call.problem} if call.problem else shown


Pairs = dict[int, int]  # number of the expected call -> number of the call that the model made


def in_any_order(wanted: Sequence[Expected], made: Sequence[ParsedCall], *, folded: bool) -> Pairs:
    """Return the largest matching of expected calls with calls made, found by augmenting paths.

    A greedy search is not enough: one call may fit two expectations, and another call only one of these.
    """
    fits = [[j for j, call in enumerate(made) if not want.difference(call, folded=folded)] for want in wanted]
    taken: dict[int, int] = {}  # by call made

    def place(i: int, tried: set[int]) -> bool:
        for j in fits[i]:
            if j not in tried:
                tried.add(j)
                if j not in taken or place(taken[j], tried):
                    taken[j] = i
                    return True
        return False

    for i in range(len(wanted)):
        place(i, set())
    return {i: j for j, i in taken.items()}


def in_order(wanted: Sequence[Expected], made: Sequence[ParsedCall], *, folded: bool) -> Pairs:
    """Return the matching of most expected calls that were made in their order: the longest common subsequence."""
    fits = [[not want.difference(call, folded=folded) for call in made] for want in wanted]
    longest = [[0] * (len(made) + 1) for _ in range(len(wanted) + 1)]
    for i in reversed(range(len(wanted))):
        for j in reversed(range(len(made))):
            skipped = max(longest[i + 1][j], longest[i][j + 1])
            longest[i][j] = max(skipped, 1 + longest[i + 1][j + 1]) if fits[i][j] else skipped
    pairs: Pairs = {}
    i = j = 0
    while i < len(wanted) and j < len(made):
        if fits[i][j] and longest[i][j] == 1 + longest[i + 1][j + 1]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif longest[i][j] == longest[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _problem(options: ToolCallsOptions, wanted: Sequence[Expected], made: Sequence[ParsedCall], pairs: Pairs) -> str:
    """Return the first mistake as a sentence; "" if there is none."""
    spare = [call for j, call in enumerate(made) if j not in pairs.values()]
    for i, want in enumerate(wanted):
        if i in pairs:
            continue
        folded = options.strings == "folded"
        if options.order == "strict" and any(not want.difference(call, folded=folded) for call in spare):
            return f"{want} was called out of order."
        near = next((call for call in spare if call.name in want.names), None)
        if near is not None:
            return f"{near.name}: {want.difference(near, folded=folded)}."
        if not made:
            return f"No call was made; expected {want}."
        if times := sum(not want.difference(call, folded=folded) for call in made):
            return f"Expected {want} once more; it was called {'once' if times == 1 else f'{times} times'}."
        names = ", ".join(sorted({call.name or "(no name)" for call in made})[:5])
        return f"Expected {want}, which was never called; calls went to {names}."
    if spare and options.extra == "forbid":
        return f"{spare[0].name or 'A call without a name'} was called, and {_none_or_no_more(wanted)} expected."
    return ""


def _none_or_no_more(wanted: Sequence[Expected]) -> str:
    return "no further call was" if wanted else "no call was"


def _describe_success(count: int) -> str:
    if not count:
        return "No call was expected, and none was made."
    return "The call is as expected." if count == 1 else f"All {count} calls are as expected."
