"""Tests of the judge stage: suggestions from both orders, preferences of execution, and unusable replies."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hub.protocols.calls import Reply
from hub.protocols.messages import Message, ToolCall
from preferences.models import Issue, Preference
from review.judge.pair_judge import Suggestion, combine, judge_pair
from review.judge.prompts import PairForJudge, ResponseForJudge
from review.judge.replies import PairVerdict
from review.models import JudgeCall, Pair
from runs.config.parsing import read_config_text
from runs.config.resolve import source_for_command
from runs.execution.runner import execute_run
from runs.execution.session.context import ExecutionOptions
from runs.models import Run
from runs.reports import results_json
from runs.services import config_of, create_run, resume_run
from runs.spending import BudgetError
from runs.web.progress import get_progress
from tests.endpoint import Answer, completion, endpoint
from tests.listeners import SilentListener
from tests.runs.config.resolution import find_environments

pytestmark = pytest.mark.django_db(transaction=True)

MANIFEST = """\
spec: 1
slug: capitals
version: 1.0.0
title: Capitals
summary: Name the capital.
category: domain-knowledge
dataset: {path: cases.jsonl, fields: {input: "Capital of {{ country }}?", target: capital}}
scoring: {rules: [{type: exact_match}]}
"""
CASES = {"france": "Paris", "japan": "Tokyo", "peru": "Lima"}
ANSWERS = {
    "good": {"france": "Paris", "japan": "Tokyo", "peru": "Cusco"},
    "poor": {"france": "Lyon 🏙️\tfor sure", "japan": "tokyo", "peru": "Quito"},
}


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def judged(**answer: Any) -> str:
    return json.dumps({"critique": "Because.", "issues": [], "winner": "A", "confidence": 0.75, **answer})


def both_orders(case: str, first: str, second: str) -> list[dict[str, Any]]:
    """*first* answers the order (good, poor), *second* the other."""
    pair = {"purpose": "pair", "case": case}
    return [
        {**pair, "first": "good#1", "second": "poor#1", "content": first},
        {**pair, "first": "poor#1", "second": "good#1", "content": second},
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bundle = tmp_path / "capitals"
    bundle.mkdir()
    (bundle / "environment.yaml").write_text(MANIFEST)
    lines(bundle / "cases.jsonl", [{"id": k, "country": k, "capital": v} for k, v in CASES.items()])
    for name, answers in ANSWERS.items():
        lines(tmp_path / f"{name}.jsonl", [{"case": k, "content": v} for k, v in answers.items()])
    return tmp_path


def play(folder: Path, recordings: list[dict[str, Any]], **changes: Any) -> Run:
    lines(folder / "judge.jsonl", recordings)
    models = [{"name": n, "provider": "replay", "responses": f"{n}.jsonl", "family": n} for n in ANSWERS]
    text = json.dumps(
        {
            "name": "capitals",
            "environments": [{"path": "capitals"}],
            "models": models,
            "tracking": {"mlflow": False},
            "judge": {"model": {"name": "j", "provider": "replay", "responses": "judge.jsonl", "family": "good"}},
            "review": {"overlap": 2},
            **changes,
        }
    )
    config = read_config_text(text, source_for_command(folder, "test.yaml")).require_valid()
    run = create_run(config=config, environments=find_environments(config))
    return execute(run, config)


def execute(run: Run, config: Any) -> Run:
    return execute_run(run=run, config=config, listener=SilentListener(), options=ExecutionOptions())


def test_agreeing_orders_create_suggestion_and_execution_preferences(folder: Path) -> None:
    wrong = {"side": "B", "category": "wrong_result", "severity": "critical", "quote": "🏙️\tfor", "note": "Not it."}
    run = play(folder, both_orders("france", judged(issues=[wrong]), judged(winner="B")))
    pair = Pair.objects.get(case__external_id="france")
    assert (pair.kind, pair.overlap, pair.free) == ("one_passes", 2, 2)
    by_source = {item.source: item for item in Preference.objects.filter(case=pair.case)}
    assert by_source["execution"].verdict == by_source["llm"].verdict == "first"
    assert by_source["llm"].confidence == 0.75
    assert not by_source["llm"].saw_evidence
    assert by_source["llm"].self_preference
    issue = Issue.objects.get()
    assert (issue.response, issue.quote, issue.category.slug) == (pair.second, "🏙️\tfor", "wrong-result")
    assert issue.response.messages[issue.message]["content"][issue.start : issue.end] == issue.quote
    summary = results_json(run)["judge"]
    assert (summary["pairs"], summary["suggested"], summary["cost_usd"], summary["recorded"]) == (3, 1, 0.0, True)
    assert summary["with_execution"] == {"pairs": 1, "agreed": 1}
    assert summary["first_position"] == {"answers": 2, "first": 1}
    assert summary["errors"] == {"no_recording": 4}
    assert run.status == Run.Status.COMPLETED


def test_disagreeing_orders_create_order_sensitive_tie(folder: Path) -> None:
    play(folder, both_orders("peru", judged(winner="A"), judged(winner="A")))
    suggestion = Preference.objects.get(source="llm")
    assert (suggestion.verdict, suggestion.order_sensitive, suggestion.saw_evidence) == ("tie", True, True)
    assert suggestion.orders == ["first", "second"]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "A is better.",
        '{"critique": "cut of',
        judged(winner="C"),
        judged(confidence="very"),
        judged(confidence=True),
        "[1, 2]",
        judged(issues=3),
    ],
)
def test_unparsable_replies_are_stored_as_failed_without_failing_the_run(folder: Path, said: str) -> None:
    run = play(folder, both_orders("france", said, judged()))
    assert run.status == Run.Status.COMPLETED
    assert run.summaries["judge"]["failed"] == 1
    assert run.summaries["judge"]["suggested"] == 0
    call = JudgeCall.objects.get(answer__isnull=True)
    assert (call.text, call.replies) == (said, 2)
    assert call.problem


def test_fenced_replies_are_parsed_and_issues_with_unknown_quotes_left_out(folder: Path) -> None:
    invented = {"side": "A", "category": "style", "severity": "minor", "quote": "never said", "note": ""}
    fenced = f"Sure!\n```json\n{judged(issues=[invented])}\n```"
    run = play(folder, both_orders("france", fenced, judged(winner="B")))
    assert run.summaries["judge"]["quotes_struck"] == 1
    assert not Issue.objects.exists()
    assert Preference.objects.get(source="llm").verdict == "first"


def calling(*arguments: str) -> list[Message]:
    calls: list[ToolCall] = [
        {"id": str(i), "type": "function", "function": {"name": "get", "arguments": text}}
        for i, text in enumerate(arguments)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, {"role": "assistant", "content": "Done."}]


def judge_answers(answer: list[Message], *quotes: str) -> Suggestion:
    """Return the suggestion of a judge that quotes each of *quotes* from the first response."""
    task: list[Message] = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "1 + 2?"},
    ]
    pair = PairForJudge(
        environment="sums",
        case="c",
        first=ResponseForJudge(label="a#1", prompt=task, answer=answer, evidence=""),
        second=ResponseForJudge(label="b#1", prompt=task, answer=[{"role": "assistant", "content": "4"}], evidence=""),
        blind=True,
        categories=[],
    )

    def verdict(side: str) -> PairVerdict:
        issues = [{"side": side, "category": "factual", "quote": quote} for quote in quotes]
        return PairVerdict.model_validate({"issues": issues, "winner": side, "confidence": 0.5})

    async def call_model(*_: object) -> Reply:
        raise AssertionError("both answers are known")

    orders = asyncio.run(judge_pair(call_model, pair, {False: verdict("A"), True: verdict("B")}))
    suggestion = combine(orders)
    assert suggestion is not None
    return suggestion


def test_issues_at_the_same_place_of_two_calls_are_both_kept() -> None:
    found = judge_answers(calling("{1}", "{2}"), "get({1})", "get({2})")
    assert [(issue.span.call, issue.span.quote) for issue in found.issues if issue.span] == [
        (0, "get({1})"),
        (1, "get({2})"),
    ]


def test_quotes_of_the_task_are_not_found_in_a_response() -> None:
    answer: list[Message] = [{"role": "assistant", "content": "three"}]
    assert judge_answers(answer, "two").issues == []
    (issue,) = judge_answers(answer, "three").issues
    assert issue.span is not None and issue.span.message == 3


def test_resumed_judging_asks_only_for_missing_pairs(folder: Path) -> None:
    recordings = both_orders("france", judged(), judged(winner="B"))
    run = play(folder, recordings)
    resume_run(run=run)
    execute(run, config_of(run))
    assert Preference.objects.filter(source="llm").count() == 1
    assert Preference.objects.filter(source="execution").count() == Pair.objects.filter(kind="one_passes").count()
    assert run.summaries["judge"]["suggested"] == 1


def test_identical_answers_are_not_paired_and_max_pairs_limits_pairs(folder: Path) -> None:
    lines(folder / "poor.jsonl", [{"case": k, "content": v} for k, v in ANSWERS["good"].items()])
    assert play(folder, both_orders("peru", judged(), judged())).summaries["judge"]["pairs"] == 0


def test_max_pairs_samples_pairs(folder: Path) -> None:
    judge = {"model": {"name": "j", "provider": "replay", "responses": "judge.jsonl"}, "max_pairs": 2}
    run = play(folder, both_orders("peru", judged(), judged()), judge=judge)
    assert (run.summaries["judge"]["pairs"], run.summaries["review"]["pairs"]) == (2, 3)


def test_resumed_run_counts_pairs_that_were_opened_before_the_interruption(folder: Path) -> None:
    run = play(folder, both_orders("peru", judged(), judged()))
    Run.objects.update(status=Run.Status.INTERRUPTED)  # as if it was interrupted in a later stage
    resume_run(run=run)
    summary = execute(run, config_of(run)).summaries["review"]
    assert (summary["pairs"], summary["opened"]) == (3, 3)


def test_side_references_of_both_orders_refer_to_same_responses(folder: Path) -> None:
    note = {"category": "style", "severity": "minor", "quote": ""}
    first = judged(critique="A is right, B is not.", issues=[{**note, "side": "B", "note": "B is Lyon."}])
    second = judged(winner="B", critique="A is wrong.", issues=[{**note, "side": "A", "note": "Response A rambles."}])
    play(folder, both_orders("france", first, second))
    stored = Preference.objects.get(source="llm")
    assert stored.critique == "⟦first⟧ is right, ⟦second⟧ is not."
    assert stored.order_critiques == ["⟦first⟧ is right, ⟦second⟧ is not.", "⟦second⟧ is wrong."]
    assert [issue.note for issue in stored.issues.order_by("pk")] == ["⟦second⟧ is Lyon.", "Response ⟦second⟧ rambles."]


# ---- what models write, and what it costs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        judged(winner="a", issues=[{"side": "b", "note": "lower case"}]),
        judged(winner="Response A", confidence="75%"),
        judged(winner="**A**", confidence="75 %"),
        judged(issues=None, critique=None),
        judged(issues=[{"side": "Response B", "category": None, "severity": "Minor", "quote": None, "note": None}]),
        json.dumps({"judgement": json.loads(judged())}),
        json.dumps([json.loads(judged())]),
        json.dumps({"reasoning": "Because.", "verdict": json.loads(judged())}),
    ],
)
def test_common_variants_of_replies_are_parsed_without_retry(folder: Path, said: str) -> None:
    play(folder, both_orders("france", said, judged(winner="B")))
    stored = Preference.objects.get(source="llm")
    assert (stored.verdict, stored.confidence) == ("first", 0.75)
    assert set(JudgeCall.objects.values_list("replies", flat=True)) == {1}


@pytest.mark.parametrize(("winner", "stored"), [("Tie", "tie"), ("Both bad", "both_bad"), ("both-bad", "both_bad")])
def test_tie_and_both_bad_are_parsed_in_common_spellings(folder: Path, winner: str, stored: str) -> None:
    play(folder, both_orders("france", judged(winner=winner), judged(winner=winner)))
    assert Preference.objects.get(source="llm").verdict == stored


def test_issues_beyond_limit_are_not_counted_as_unknown_quotes(folder: Path) -> None:
    issues = [{"side": "A", "category": "style", "quote": "", "note": f"n{i}"} for i in range(25)]
    run = play(folder, both_orders("france", judged(issues=issues), judged(winner="B")))
    assert run.summaries["judge"]["quotes_struck"] == 0
    assert Issue.objects.count() == 20


def paid(folder: Path, url: str, budget: float) -> dict[str, Any]:
    """Configure a judge behind an endpoint that costs a cent per call."""
    model = {
        "name": "j",
        "provider": "openai",
        "base_url": url,
        "model": "j",
        "price": {"input": 0.0, "output": 10_000 / 5},
    }
    return {"judge": {"model": model}, "limits": {"budget_usd": budget}, "concurrency": 1}


def test_judge_stopped_by_budget_reports_it_and_resumes(folder: Path) -> None:
    with endpoint(lambda body, number: completion(judged(winner="tie"))) as judge:
        run = play(folder, [], **paid(folder, judge.url, 0.03))
        assert (run.status, len(judge.requests)) == (Run.Status.STOPPED, 3)
        assert "of the budget of $0.0300 is spent" in run.message
        summary = results_json(run)["judge"]
        assert (summary["pairs"], summary["suggested"]) == (3, 1)
        assert summary["stopped"] == run.message
        assert summary["cost_usd"] == pytest.approx(0.03)
        assert run.cost_usd == pytest.approx(0.03)
        assert "review" not in run.summaries
        assert Pair.objects.filter(free__gt=0).count() == 0  # people come after the judge
        Run.objects.filter(pk=run.pk).update(cost_usd=0.0)  # as if the process had been killed
        run.refresh_from_db()
        with pytest.raises(BudgetError, match="has spent"):  # what was spent is not forgotten
            resume_run(run=run)
        run.config["limits"]["budget_usd"] = 1.0
        resume_run(run=run)
        execute(run, config_of(run))
        assert (run.status, len(judge.requests)) == (Run.Status.COMPLETED, 6)
    summary = results_json(run)["judge"]
    assert (summary["suggested"], "stopped" in summary) == (3, False)
    assert [summary["cost_usd"], run.cost_usd] == pytest.approx([0.06, 0.06])
    assert Pair.objects.filter(free__gt=0).count() == 3


def test_progress_counts_the_cost_of_the_judge(folder: Path) -> None:
    with endpoint(lambda body, number: completion(judged(winner="tie"))) as judge:
        run = play(folder, [], **paid(folder, judge.url, 1.0))
    assert get_progress(run)["cost_usd"] == run.cost_usd == pytest.approx(0.06)
    run.status, run.cost_usd = Run.Status.RUNNING, 0.0  # as it is while the judge is called
    assert get_progress(run)["cost_usd"] == pytest.approx(0.06)
    run.cost_usd = 0.5  # of earlier executions, with responses that were replaced
    assert get_progress(run)["cost_usd"] == 0.5
    run.cost_usd = None
    assert get_progress(run)["cost_usd"] is None


def test_cost_of_unusable_reply_is_kept(folder: Path) -> None:
    with endpoint(lambda body, number: completion("No idea." if number < 2 else judged(winner="tie"))) as judge:
        run = play(folder, [], **paid(folder, judge.url, 0.02))
        assert run.summaries["judge"]["cost_usd"] == pytest.approx(0.02)
        run.config["limits"]["budget_usd"] = 1.0
        resume_run(run=run)
        execute(run, config_of(run))
    assert run.summaries["judge"]["suggested"] == 3
    expected = 0.01 * len(judge.requests)
    assert [run.summaries["judge"]["cost_usd"], run.cost_usd] == pytest.approx([expected, expected])


def test_cost_of_failed_calls_with_token_counts_is_kept(folder: Path) -> None:
    empty = completion("")
    assert isinstance(empty.body, dict)
    failed = Answer({**empty.body, "choices": []})
    with endpoint(lambda body, number: failed) as judge:
        run = play(folder, [], **{**paid(folder, judge.url, 1.0), "limits": {"budget_usd": 1.0, "retries": 0}})
    expected = 0.01 * len(judge.requests)
    assert [run.summaries["judge"]["cost_usd"], run.cost_usd] == pytest.approx([expected, expected])
    assert run.summaries["judge"]["failed"] == 0
    assert set(JudgeCall.objects.values_list("replies", "text")) == {(0, "")}
    assert all(JudgeCall.objects.values_list("problem", flat=True))
