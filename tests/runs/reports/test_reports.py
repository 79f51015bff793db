"""Reports of runs: figures, left-out cases, warnings, and escaping of text from models."""

import io
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rich.console import Console

from hub.common.output.foreign_text import clean
from hub.management.invocation import command
from hub.models import Case
from review.queue.pairing import NO_PAIRS
from review.stages.review import ReviewStage, ReviewStageConfig
from runs.models import Response, Run, Score
from runs.providers.registry import PROVIDERS
from runs.providers.replay import Replay
from runs.reports import formats, print_report, render_html, results_json
from runs.reports.result_charts import result_charts
from runs.results.aggregate import aggregate_run
from runs.results.stored import get_results
from runs.results.warnings import warnings
from runs.stages import RunSize
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db
PRICE = {"input": 1.0, "output": 2.0}


def cases(run: Run) -> list[Case]:
    return list(Case.objects.filter(version=run.environments.get().version).order_by("position"))


def printed(run: Run, **options: Any) -> str:
    out = io.StringIO()
    print_report(run, Console(file=out, **options))
    return out.getvalue()


def only_result(run: Run) -> dict[str, Any]:
    document = json.loads(json.dumps(results_json(run), allow_nan=False))
    (result,) = document["results"]
    return result


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_json_has_all_documented_keys() -> None:
    run = stored_run(stored_version(cases=60), summaries={"judge": {"pairs": 3, "cost_usd": 0.1}})
    stored_outcomes(run, "p" * 51 + "f" * 9)
    document = results_json(run)
    assert {"run", "name", "status", "config_hash", "seconds", "cost_usd", "results", "judge", "mlflow"} <= set(
        document
    )
    assert document["judge"] == {"pairs": 3, "cost_usd": 0.1}
    result = only_result(run)
    expected = {"environment": "sums@1.0.0", "model": "alpha", "cases": 60, "responses": 60, "passed": 51, "failed": 9}
    assert expected.items() <= result.items()
    assert (result["accuracy"], [round(x, 3) for x in result["ci95"]]) == (0.85, [0.739, 0.919])
    assert result["ci_method"] == "wilson"
    assert (result["pass_at"], result["pass_hat"]) == ({"1": 0.85}, {"1": 0.85})
    assert result["latency_ms"] == {"p50": None, "p95": None}
    assert result["execution"] == {
        "runs": 0,
        "runtime_ms": {"p50": None, "p95": None},
        "tier": "",
        "trust": {"isolated": 0, "in_process": 0},
        "failures": {},
    }


def test_instructions_are_reported_by_prompt_and_by_instruction_strictly_and_loosely() -> None:
    run = stored_run(stored_version(cases=3, scoring={"rules": [{"name": "i", "type": "instructions"}]}))
    outcomes = [[(True, True)], [(False, True), (True, True)], [(False, False), (True, True)]]
    for case, pairs in zip(cases(run), outcomes, strict=True):
        response = stored_response(run, case, "passed" if all(strict for strict, _ in pairs) else "failed")
        detail = {"instructions": [{"id": "x", "strict": strict, "loose": loose} for strict, loose in pairs]}
        Score.objects.create(response=response, position=0, rule="i", type="instructions", value=1.0, detail=detail)
    assert only_result(run)["instructions"] == {
        "responses": 3,
        "instructions": 5,
        "prompt_level": {"strict": pytest.approx(1 / 3, abs=1e-6), "loose": pytest.approx(2 / 3, abs=1e-6)},
        "instruction_level": {"strict": 0.6, "loose": 0.8},
    }
    assert "prompt level strict 33.3 %, loose 66.7 %; instruction level strict 60.0 %, loose 80.0 %" in printed(run)
    assert "instruction level strict 60.0 %" in render_html(run)


def test_errored_and_unscored_responses_are_not_counted_as_wrong() -> None:
    run = stored_run(stored_version(cases=4))
    stored_outcomes(run, "pfeu")
    result = only_result(run)
    assert (result["accuracy"], result["errored"], result["unscored"]) == (0.5, 1, 1)
    assert result["incomplete"] is True


def test_run_that_scored_at_least_95_percent_is_final() -> None:
    run = stored_run(stored_version(cases=40))
    stored_outcomes(run, "p" * 38 + "ee")
    assert only_result(run)["incomplete"] is False


def test_missing_responses_make_a_run_incomplete() -> None:
    run = stored_run(stored_version(cases=10))
    stored_outcomes(run, "p" * 9 + "-")
    result = only_result(run)
    assert (result["responses"], result["expected"], result["incomplete"]) == (9, 10, True)


def test_accuracy_over_attempts_is_the_mean_of_the_cases_means() -> None:
    run = stored_run(stored_version(cases=2), attempts=3)
    first, second = cases(run)
    for attempt, status in enumerate(["passed", "passed", "failed"], 1):
        stored_response(run, first, status, attempt=attempt)
    stored_response(run, second, "passed", attempt=1)
    stored_response(run, second, "errored", attempt=2, error_kind="timeout")
    result = only_result(run)
    assert result["accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    assert result["errors"] == {"timeout": 1}
    # Only the first case has two and three scored attempts: of 2 in 3, one pair passes wholly and none not at all.
    assert result["pass_at"] == {"1": pytest.approx(5 / 6), "2": 1.0, "3": 1.0}
    assert result["pass_hat"] == {"1": pytest.approx(5 / 6), "2": pytest.approx(1 / 3), "3": 0.0}


def test_cluster_column_widens_the_interval() -> None:
    data = [{"id": f"c{i}", "input": "?", "row": {"cluster": f"text {i // 5}"}} for i in range(20)]
    run = stored_run(stored_version(cases=data))
    stored_outcomes(run, "p" * 10 + "f" * 10)
    clustered = only_result(run)
    assert (clustered["ci_method"], clustered["effective_n"]) == ("agresti_coull_clustered", 3.0)
    assert clustered["ci95"][1] - clustered["ci95"][0] > 0.7  # Wilson's for 10 of 20 is 0.4 wide


@pytest.mark.parametrize("empty", [None, ""])
def test_cases_with_an_empty_cluster_are_independent(empty: str | None) -> None:
    data = [{"id": f"c{i}", "row": {"cluster": f"text {i}" if i < 2 else empty}} for i in range(20)]
    run = stored_run(stored_version(cases=data))
    stored_outcomes(run, "p" * 10 + "f" * 10)
    independent = only_result(run)
    assert independent["effective_n"] > 15  # 1 if the 18 cases were one cluster
    Case.objects.update(data={"row": {"cluster": empty}})
    assert aggregate_run(run)[0].accuracy.method == "wilson"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("wilson", "Wilson"),
        ("agresti_coull_clustered", "Agresti-Coull, clustered"),
        ("tango_effective_n", "Tango, effective n"),
        ("none", "none"),
    ],
)
def test_interval_methods_have_readable_names(name: str, title: str) -> None:
    assert formats.method(name) == title


def test_single_cluster_has_a_note_instead_of_an_interval() -> None:
    run = stored_run(stored_version(cases=[{"id": str(i), "metadata": {"cluster": "x"}} for i in range(3)]))
    stored_outcomes(run, "ppf")
    result = only_result(run)
    assert (result["ci95"], result["ci_method"]) == (None, "none")
    assert "two clusters" in result["ci_note"]
    assert "two clusters" in printed(run)


def test_latency_leaves_out_recorded_and_cached_answers() -> None:
    run = stored_run(stored_version(cases=3))
    for case, latency in zip(cases(run), [100.0, None, 300.0], strict=True):
        stored_response(run, case, latency_ms=latency)
    assert only_result(run)["latency_ms"] == {"p50": 200.0, "p95": 290.0}


def test_tokens_cost_and_executions_are_summed() -> None:
    run = stored_run(stored_version(cases=3), price=PRICE)
    shared = {"input_tokens": 1000, "output_tokens": 50, "cost_usd": 0.01, "sandbox_tier": "A", "execution_ms": 4.0}
    for case, status in zip(cases(run), ["passed", "assertion", "timeout"], strict=True):
        stored_response(
            run,
            case,
            "passed" if status == "passed" else "failed",
            execution_status=status,
            role_cost_usd=0.02,
            **shared,
        )
    result = only_result(run)
    assert result["tokens"] == {"input": 3000, "output": 150, "cached_input": 0, "reasoning": 0}
    assert (result["cost_usd"], result["role_cost_usd"], result["cost_per_correct_usd"]) == (0.09, 0.06, 0.09)
    assert result["execution"]["failures"] == {"assertion": 1, "timeout": 1}
    assert (result["execution"]["runs"], result["execution"]["tier"]) == (3, "A")


@pytest.mark.parametrize("provider", ["openai", "replay"])
def test_cost_is_unknown_without_a_price(provider: str) -> None:
    run = stored_run(stored_version(cases=2), ["free", "other"], provider=provider)
    for label in ("free", "other"):
        stored_outcomes(run, "pp", model=label)
    text = printed(run)
    assert "$0" not in text and "$0" not in render_html(run)
    assert ("No price is given for free, other" in text) == (provider == "openai")
    run.models.filter(label="free").update(spec={"price": PRICE})
    assert printed(run).count("$0") == 2  # of the model and of the run


@pytest.mark.parametrize(("provider", "start"), [("openai", "No price is given for"), ("replay", "Recorded answers")])
def test_warnings_about_many_models_name_a_few_and_the_report_links_to_all(provider: str, start: str) -> None:
    labels = [f"m{i}" for i in range(7)]
    run = stored_run(stored_version(cases=2), labels, provider=provider)
    for label in labels:
        stored_outcomes(run, "pf", model=label)
    (note,) = (item for item in warnings(run, get_results(run)) if item.startswith(start))
    assert "m0, m1, m2, m3 and 3 more" in note and "m4" not in note
    html = render_html(run)
    assert 'href="#models-compared"' in html and html.count('id="models-compared"') == 1


def test_many_incomplete_results_share_one_warning() -> None:
    labels = [f"m{i}" for i in range(6)]
    run = stored_run(stored_version(cases=4), labels)
    for label in labels:
        stored_outcomes(run, "ppfe", model=label)
    (note,) = (item for item in warnings(run, get_results(run)) if "ncomplete" in item)
    assert note.startswith("Incomplete, so the accuracies are not final: m0 on ")
    assert note.count("(3 of 4 responses are scored)") == 4 and note.endswith(" and 2 more.")


def test_partly_unknown_cost_is_unknown_in_every_report() -> None:
    run = stored_run(stored_version(cases=2), price=PRICE, cost_usd=None)
    stored_response(run, cases(run)[0], cost_usd=0.5)
    stored_response(run, cases(run)[1], cost_usd=None, role_cost_usd=None)
    (result,) = results_json(run)["results"]
    assert (result["cost_usd"], result["role_cost_usd"], result["cost_per_correct_usd"]) == (None, None, None)
    for text in (printed(run), render_html(run)):
        assert "$" not in text
        assert "1 response of alpha on sums@1.0.0 came without token counts" in " ".join(text.split())
        assert "The cost of role models (judges, simulated users) for alpha on sums@1.0.0 is unknown" in " ".join(
            text.split()
        )


@pytest.mark.parametrize(("price", "shown"), [(PRICE, True), ({"input": 0.0, "output": 0.0}, False), (None, False)])
def test_requests_that_timed_out_may_cost_more_than_is_counted(price: dict[str, float] | None, shown: bool) -> None:
    run = stored_run(stored_version(cases=2), price=price)
    stored_outcomes(run, "pe")
    run.environments.get().responses.filter(status="errored").update(error_kind="timeout")
    expected = "1 response of alpha on sums@1.0.0 ended with a request that timed out. The endpoint may charge for it"
    assert (expected in " ".join(printed(run).split())) == shown


def test_results_are_read_with_few_queries_and_no_transcripts() -> None:
    run = stored_run(stored_version(cases=30))
    stored_outcomes(run, "p" * 30)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        aggregate_run(run)
    assert len(captured) <= 6
    assert not any('"messages"' in query["sql"] for query in captured)


# ---- quarantine ------------------------------------------------------------------------------------------------------


def test_case_quarantined_before_the_run_is_left_out_and_counted() -> None:
    run = stored_run(stored_version(cases=4))
    stored_outcomes(run, "pppf")
    accepted_defect(cases(run)[3], hours_ago=1)
    result = only_result(run)
    assert (result["cases"], result["quarantined"], result["failed"], result["accuracy"]) == (3, 1, 0, 1.0)
    assert "Left out of sums@1.0.0, because a curator found it wrong: 1 case." in printed(run)


def test_case_quarantined_after_the_start_of_the_run_counts() -> None:
    run = stored_run(stored_version(cases=4))
    stored_outcomes(run, "pppf")
    accepted_defect(cases(run)[3], hours_ago=-1)
    assert only_result(run)["quarantined"] == 0


def test_quarantined_case_that_was_not_chosen_is_not_counted() -> None:
    run = stored_run(stored_version(cases=4))
    accepted_defect(cases(run)[3], hours_ago=1)
    run.environments.update(case_positions=[0, 2], case_count=2)
    result = only_result(run)
    assert (result["cases"], result["quarantined"]) == (2, 0)


def test_cost_in_the_chart_is_that_of_a_response_also_with_quarantined_cases_and_several_attempts() -> None:
    run = stored_run(stored_version(cases=4), price=PRICE, attempts=2)
    for case in cases(run):
        for attempt in (1, 2):
            stored_response(run, case, attempt=attempt, cost_usd=0.1)
    for case in cases(run)[2:]:
        accepted_defect(case, hours_ago=1)
    (chart,) = [chart for chart in result_charts(aggregate_run(run)) if chart.key == "chart-cost"]
    assert (chart.columns[2], chart.rows[0][2]) == ("US dollars per response", "$0.1000")


# ---- the terminal ----------------------------------------------------------------------------------------------------


def test_pipe_gets_plain_lines_of_at_most_120_columns() -> None:
    labels = ["a-model-with-quite-a-long-label", "b"]
    run = stored_run(stored_version("a-rather-long-environment-name"), models=labels, price=PRICE)
    for label in labels:
        for case in cases(run):
            tokens = {"input_tokens": 123_456, "output_tokens": 98_765}
            stored_response(run, case, model=label, latency_ms=12_345.6, cost_usd=1234.5, **tokens)
    text = printed(run)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 120
    assert "493.8 k/395.1 k" in text
    assert "$4,938.00" in text


def test_narrow_terminal_shows_costs_on_a_separate_line() -> None:
    run = stored_run(stored_version(cases=1), price=PRICE)
    stored_response(run, cases(run)[0], cost_usd=0.5, input_tokens=1200)
    text = printed(run, force_terminal=True, color_system=None, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "alpha: p50/p95 ms -, tokens in/out 1.2 k/0, cost $0.5000" in text


@pytest.mark.parametrize("width", [*range(44, 130, 3)])
def test_no_figure_is_cut_at_any_terminal_width(width: int) -> None:
    run = stored_run(stored_version(cases=1), models=["a-model-with-quite-a-long-label"], price=PRICE)
    label = "a-model-with-quite-a-long-label"
    stored_response(run, cases(run)[0], model=label, cost_usd=0.5, input_tokens=1200, refused=True)
    text = printed(run, force_terminal=True, color_system=None, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert re.search(r"100\.0 % \[20\.7, 100\.0\] 1", text)
    for head in ("passed", "failed", "error", "unsc.", "trunc.", "refus.", "p50/p95 ms", "tokens in/out", "cost"):
        assert head in " ".join(text.split())


def test_first_failures_are_listed_with_case_and_reason() -> None:
    run = stored_run(stored_version(cases=9))
    for i, case in enumerate(cases(run)):
        stored_response(run, case, "failed", reason=f"expected {i}, got nothing")
    text = printed(run)
    assert re.search(r"failed\s+c0\s+expected 0, got nothing", text)
    assert "expected 5" not in text
    assert "and 4 more" in text


def test_model_text_is_escaped_in_terminal_reports() -> None:
    run = stored_run(stored_version(cases=1))
    evil = "[bold red]hi[/] \x1b[2J\x1b]0;owned\x07 a\rb \u202egnp.exe \ud800 end"
    stored_response(run, cases(run)[0], "failed", reason=evil.replace("\ud800", ""))
    text = printed(run, force_terminal=True, color_system=None, width=120)
    assert "[bold red]hi[/]" in text
    assert "owned" not in text
    assert not re.search(r"[\x07\r\u202e]|\x1b\[2J", text)


def test_undefined_figures_are_a_dash_with_a_reason() -> None:
    run = stored_run(stored_version(cases=2))
    stored_outcomes(run, "ee")
    text = printed(run)
    assert "no case was scored" in text
    assert re.search(r"alpha\s+-\s+-", text)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sandbox_tier": "C", "execution_status": "passed"}, "isolation tier C"),
        ({"sandbox_tier": "A", "execution_status": "tampered"}, "interfered with their tests"),
        ({"execution_trust": "in_process", "execution_status": "passed"}, "1 of 1 executions shared a process"),
    ],
)
def test_weak_isolation_and_tampering_are_warnings(fields: dict[str, str], sentence: str) -> None:
    run = stored_run(stored_version(cases=1))
    stored_response(run, cases(run)[0], **fields)
    assert sentence in printed(run)
    assert any(sentence in note for note in results_json(run)["warnings"])


def test_reports_count_executions_that_were_isolated_and_that_shared_a_process_with_their_tests() -> None:
    run = stored_run(stored_version(cases=4))
    for case, trust in zip(cases(run), ["isolated", "isolated", "in_process", "isolated"], strict=True):
        status = "unsupported" if case == cases(run)[3] else "passed"
        outcome = "unscored" if status == "unsupported" else "passed"
        executed = {"execution_status": status, "execution_trust": trust, "execution_ms": 1.0, "sandbox_tier": "A"}
        stored_response(run, case, outcome, **executed)
    execution = only_result(run)["execution"]
    assert execution["trust"] == {"isolated": 3, "in_process": 1}
    assert execution["failures"] == {"unsupported": 1}
    for report in (printed(run), render_html(run)):
        assert "4 executions in the sandbox (tier A), p50 1.0 ms, " in report
        assert "1 of 4 executions shared a process with their tests" in report


def test_recorded_answers_and_stopped_models_are_named() -> None:
    run = stored_run(stored_version(cases=1), provider="replay")
    run.models.update(stopped="The key was refused.")
    stored_outcomes(run, "p")
    text = printed(run)
    assert "Recorded answers, given before this run: alpha" in text
    assert "alpha was stopped: The key was refused." in text
    assert only_result(run)["recorded"] is True


def test_cost_of_recorded_answers_is_unknown_only_without_a_price() -> None:
    free = {"input": 0.0, "output": 0.0}
    for slug, price, said in (("sums", None, "Latency and cost are unknown."), ("more", free, "Latency is unknown.")):
        run = stored_run(stored_version(slug, cases=1), provider="replay", price=price)
        stored_outcomes(run, "p")
        assert f"Recorded answers, given before this run: alpha. {said}" in printed(run)


def test_first_failure_is_the_failed_response_that_was_stored_first() -> None:
    run = stored_run(stored_version(cases=3))
    for name in ("c2", "c0", "c1"):
        stored_response(run, Case.objects.get(external_id=name), "failed" if name != "c1" else "passed")
    first = Response.objects.get(case__external_id="c2")
    assert [cell.figures.first_failed for cell in aggregate_run(run)] == [first.pk]


def test_answers_of_each_provider_that_is_not_live_are_reported_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Archive(Replay):
        type = "archive"

    monkeypatch.setitem(PROVIDERS, "archive", Archive)
    run = stored_run(stored_version(cases=1), provider="archive")
    stored_outcomes(run, "p")
    assert only_result(run)["recorded"] is True
    assert "Recorded answers, given before this run: alpha" in printed(run)


def test_answers_of_a_provider_that_is_no_longer_installed_are_reported_as_not_recorded() -> None:
    run = stored_run(stored_version(cases=1), provider="removed")
    stored_outcomes(run, "p")
    assert only_result(run)["recorded"] is False


def test_pending_run_shows_the_command_that_logs_it() -> None:
    run = stored_run(stored_version(), tracking_state="pending", tracking={"error": "refused", "experiment": "x"})
    assert f"not logged in MLflow yet (refused). To log it later: {command('sync_tracking', run.pk)}" in printed(run)
    run.tracking_state, run.tracking = "logged", {"parent": "abc", "experiment": "x"}
    assert "MLflow: run abc in experiment x" in printed(run)


def test_summaries_and_failures_of_stages_are_sentences() -> None:
    judged = {"judge": "j", "recorded": True, "suggested": 3, "pairs": 4, "order_sensitive": 1}
    judged |= {"with_execution": {"pairs": 2, "agreed": 1}}
    run = stored_run(stored_version(), summaries={"review": {"error": "OSError: full"}, "judge": judged})
    sentences = [
        "Judge j, recorded: 3 of 4 pairs judged, 1 order-sensitive; agrees with execution on 1 of 2 pairs "
        "judged blind.",
        "Pairs for review failed: OSError: full",
    ]
    assert "\n".join(sentences) in printed(run)
    assert all(sentence in render_html(run) for sentence in sentences)


def test_stages_without_a_pair_say_so() -> None:
    judged = {"judge": "j", "recorded": True, "suggested": 0, "pairs": 0, "order_sensitive": 0}
    judged |= {"with_execution": {"pairs": 0, "agreed": 0}}
    opened = {"pairs": 0, "opened": 0, "overlap": 1, "decided_by_execution": 0}
    text = printed(stored_run(stored_version(), summaries={"review": opened, "judge": judged}))
    assert f"Judge j: {NO_PAIRS}" in text
    assert f"Review: {NO_PAIRS}" in text


def test_estimate_of_a_run_that_can_have_no_pairs_says_why() -> None:
    size = RunSize(models=1, attempts=1, cases=5)
    reason = "no pairs, because `across: models` needs two models, and `across: attempts` two attempts."
    assert ReviewStage().estimate(size, ReviewStageConfig()).line == f"Review: {reason}"
    two = RunSize(models=2, attempts=1, cases=5)
    assert ReviewStage().estimate(two, ReviewStageConfig()).line == "Review: up to 5 pairs, 1 reviewer each."


def test_status_of_an_incomplete_run_is_the_first_warning() -> None:
    run = stored_run(stored_version(cases=1), status=Run.Status.STOPPED, message="The budget is spent.")
    assert results_json(run)["warnings"][0] == "The run is stopped by its budget. The budget is spent."


# ---- HTML ------------------------------------------------------------------------------------------------------------


def test_html_is_one_file_without_script_or_foreign_address() -> None:
    run = stored_run(stored_version(cases=2))
    stored_outcomes(run, "pf")
    html = render_html(run)
    assert "<script" not in html
    assert not re.search(r"""(?:src|href)=|url\(|@import""", html)
    assert "prefers-color-scheme: dark" in html
    assert run.config_hash in html


def test_html_escapes_text_of_models_and_configs() -> None:
    run = stored_run(stored_version(cases=1), models=["<b>m</b>"], name="<i>n</i>")
    stored_response(run, cases(run)[0], "failed", text="</pre><script>alert(1)</script>\x07", reason="<img src=x>")
    html = render_html(run)
    assert "<script>" not in html
    assert "<img" not in html
    assert "<b>m" not in html
    assert "<i>n" not in html
    assert "\x07" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_long_lists_and_answers_are_cut_with_a_note() -> None:
    run = stored_run(stored_version(cases=52))
    for case in cases(run):
        stored_response(run, case, "failed", text="x" * 5000)
    html = render_html(run)
    assert "The first 50 of 52 responses" in html
    assert "the first 4,000 of 5,000 characters" in html
    assert html.count("x" * 4000) == 50
    assert "x" * 4001 not in html


# ---- figures as text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (formats.money(0.0), "$0"),
        (formats.money(0.01234), "$0.0123"),
        (formats.money(0.001), "$0.0010"),
        (formats.money(0.0000654), "$0.000065"),
        (formats.money(0.00005), "$0.00005"),
        (formats.money(1234.5), "$1,234.50"),
        (formats.money(None), "-"),
        (formats.ratio(0.0), "0.00"),
        (formats.ratio(0.00333), "0.0033"),
        (formats.ratio(0.0421), "0.042"),
        (formats.ratio(1.2145), "1.21"),
        (formats.tokens(999), "999"),
        (formats.tokens(12_345), "12.3 k"),
        (formats.tokens(999_949), "999.9 k"),
        (formats.tokens(999_950), "1.0 M"),
        (formats.tokens(2_000_000), "2.0 M"),
        (formats.percent(0.8533), "85.3 %"),
        (formats.percent(0.0), "0.0 %"),
        (formats.percent(1 / 4000), "< 0.1 %"),
        (formats.percent(1 / 2000), "0.1 %"),
        (formats.percent(1998 / 2000), "99.9 %"),
        (formats.percent(3999 / 4000), "> 99.9 %"),
        (formats.percent(0.7 + 0.2 + 0.1), "100.0 %"),
        (formats.percent(1.0004), "100.0 %"),
        (formats.score(1.0), "1.00"),
        (formats.score(249 / 250), "> 0.99"),
        (formats.score(0.7 + 0.2 + 0.1), "1.00"),
        (formats.score(0.9996, 3), "> 0.999"),
        (formats.score(0.853), "0.85"),
        (formats.score(0.004), "< 0.01"),
        (formats.score(-0.004), "> -0.01"),
        (formats.score(-0.996), "< -0.99"),
        (formats.score(-1.0), "-1.00"),
        (formats.score(0.0), "0.00"),
        (formats.score(1.0, -2), "1"),
        (formats.score(0.996, -2), "> 0.99"),
        (formats.score(0.5, -2), "0.50"),
        (formats.score(None), "-"),
        (formats.points(-0.05), "-5.0"),
        (formats.points(-0.0004), "-0.04"),
        (formats.points(-1e-18), "+0.0"),
        (formats.points(0.9996), "+99.96"),
        (formats.size(-0.0004), "0.04"),
        (formats.interval(-1e-18, 0.05), "[0.0, 5.0]"),
        (formats.interval(0.00043, 0.0026), "[0.04, 0.3]"),
        (formats.interval(-0.0026, -0.0000961), "[-0.3, -0.01]"),
        (formats.interval(0.9, 0.9997), "[90.0, 99.97]"),
        (formats.interval(0.9, 0.7 + 0.2 + 0.1), "[90.0, 100.0]"),
        (formats.score_interval(-0.003, 0.997), "[-0.003, 0.997]"),
        (formats.score_interval(-1.0, 0.0), "[-1.00, 0.00]"),
        (formats.duration(3.14), "3.1 s"),
        (formats.duration(59.97), "1 min 00 s"),
        (formats.duration(125), "2 min 05 s"),
        (formats.duration(7390), "2 h 03 min"),
        (formats.p_value(0.00001), "< 0.0001"),
        (formats.p_value(0.04996), "< 0.05"),
        (formats.p_value(0.04994), "0.0499"),
        (formats.p_value(0.05), "0.0500"),
        (clean("a\x1b[31mb\x9b c\u200b\nd"), "ab c d"),
        (clean("a\n\tb\x07", lines=True), "a\n\tb"),
        (clean("naïve 日本 🙂"), "naïve 日本 🙂"),
        (formats.cut("abcdefgh", 6), "abc..."),
    ],
)
def test_formats_of_figures_and_text(found: str, wanted: str) -> None:
    assert found == wanted
