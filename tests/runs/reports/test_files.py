"""Reports as files: HTML, Markdown and JUnit, written by `report` and `eval`."""

import xml.etree.ElementTree as ElementTree
from html import escape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from hub.models import Case
from runs.models import Run
from runs.reports.columns import TABLE_COLUMNS
from runs.reports.html import render_html
from runs.reports.markdown import render_markdown
from tests.commands import run_command
from tests.endpoint import endpoint
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_version
from tests.runs.capitals import CAPITALS, answer_capital, config_text

HOSTILE = "]]></failure><script>alert(1)</script>\x07 | [x](http://x) `a`\ud800\ufffe"


def hostile_run() -> Run:
    run = stored_run(stored_version(cases=2), models=["a|b"], name="[n](http://x) <b>")
    for case in Case.objects.filter(version=run.environments.get().version):
        stored_response(run, case, "failed", text=HOSTILE.replace("\ud800", ""), reason=HOSTILE.replace("\ud800", ""))
    return run


@pytest.mark.django_db
def test_junit_has_a_test_for_each_response(tmp_path: Path) -> None:
    version = stored_version(cases=5)
    accepted_defect(Case.objects.get(version=version, position=4), hours_ago=1)
    run = stored_run(version)
    stored_outcomes(run, "pfeup")
    run_command("report", run.pk, "--junit", tmp_path / "r.xml")
    (suite,) = ElementTree.parse(tmp_path / "r.xml").getroot()
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "1", "skipped": "2"}
    outcomes = [[child.tag for child in test] for test in suite]
    assert outcomes == [[], ["failure"], ["error"], ["skipped"], ["skipped"]]


@pytest.mark.django_db
def test_text_of_models_stays_text_in_each_file(tmp_path: Path) -> None:
    run = hostile_run()
    paths = [tmp_path / name for name in ("r.html", "r.md", "r.xml")]
    run_command("report", run.pk, "--html", paths[0], "--markdown", paths[1], "--junit", paths[2])
    (suite,) = ElementTree.parse(paths[2]).getroot()
    assert "<script>alert(1)</script>" in (suite[0][0].text or "")
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(paths[1].read_text())
    assert "<a " not in rendered and "<script" not in rendered and "<b>" not in rendered
    assert rendered.count("<td") == 1 + len(TABLE_COLUMNS)  # the first is the model
    assert "<script>" not in paths[0].read_text()


@pytest.mark.django_db
def test_markdown_of_a_comparison_shows_the_gate_as_it_was_given(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=2), models=["a", "b"])
    stored_outcomes(run, "pf", model="a")
    stored_outcomes(run, "fp", model="b")
    gate = "accuracy >= -0.01; cost <= 1.2x"
    command = ["compare", run.pk, "--model-a", "a", "--model-b", "b", "--gate", gate]
    run_command(*command, "--markdown", tmp_path / "r.md", code=5)
    rendered = MarkdownIt("commonmark").render((tmp_path / "r.md").read_text())
    assert f"<strong>INCONCLUSIVE</strong>: {escape(gate)}</p>" in rendered


@pytest.mark.django_db
def test_html_has_verdict_comparison_slices_and_reasons() -> None:
    version = stored_version(cases=40)
    for case in Case.objects.filter(version=version):
        case.data = {**case.data, "metadata": {"level": "hard" if case.position % 2 else "easy"}}
        case.save(update_fields=["data"])
    run = stored_run(version, models=["a", "b"])
    stored_outcomes(run, "p" * 40, model="a")
    stored_outcomes(run, "pf" * 20, model="b")
    html = render_html(run)
    assert "a is better than b" in html and "a is better than b" in render_markdown(run)
    for heading in ("Models compared", "Slices", "Frequent reasons", "How to read the figures"):
        assert f"<h2>{heading}</h2>" in html
    assert "100.0 % [83.9, 100.0]" in html
    assert html.count('<svg class="chart"') == html.count('<svg class="chart narrow"') >= 2


@pytest.mark.django_db
def test_markdown_marks_incomplete_results() -> None:
    run = stored_run(stored_version(cases=40), models=["a", "b"])
    stored_outcomes(run, "p" * 37 + "eee", model="a")
    stored_outcomes(run, "p" * 38 + "ee", model="b")
    a, b = (line for line in render_markdown(run).splitlines() if line.startswith(("| a ", "| b ")))
    assert "| [90.6, 100.0] \\* |" in a and "\\*" not in b


@pytest.mark.django_db
def test_existing_files_are_kept_without_force(tmp_path: Path) -> None:
    run = hostile_run()
    (tmp_path / "r.md").write_text("mine")
    output = run_command("report", run.pk, "--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md", code=2)
    assert "r.md exists already; --force replaces it." in output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.md"]
    run_command("report", run.pk, "--markdown", tmp_path / "r.md", "--force")
    assert "Run" in (tmp_path / "r.md").read_text()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["report", "--html", "r.xml"], "r.xml: the report as one HTML file ends in .html."),
        (["report", "--html", "r.html", "--junit", "r.md"], "ends in .xml"),
        (["compare", "--markdown", "r.HTML"], "r.HTML: the comparison in this format ends in .md."),
        (["report", "--html", "run.yaml", "--force"], "run.yaml: the report as one HTML file ends in .html."),
    ],
)
def test_file_with_the_suffix_of_another_format_is_refused(tmp_path: Path, words: list[str], reason: str) -> None:
    run = stored_run(stored_version(cases=1), models=["a", "b"])
    command, *options = words
    paths = [word if word.startswith("--") else str(tmp_path / word) for word in options]
    assert reason in run_command(command, run.pk, *paths, code=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.django_db
def test_file_may_have_any_other_name(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=1), models=["a"])
    run_command("report", run.pk, "--html", tmp_path / "report", "--markdown", tmp_path / "summary.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report", "summary.txt"]


@pytest.mark.django_db(transaction=True)
def test_eval_checks_the_files_before_it_asks_a_model_and_writes_them_below_the_floor(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        (folder / "run.yaml").write_text(config_text(server.url))
        words = ["eval", "--config", folder / "run.yaml", "--junit", folder / "out" / "r.xml", "--fail-under", 1]
        assert f"there is no folder {folder / 'out'}" in run_command(*words, code=2)
        assert (server.requests, Run.objects.exists()) == ([], False)
        (folder / "out").mkdir()
        assert "Wrote" in run_command(*words)
    assert len(ElementTree.parse(folder / "out" / "r.xml").getroot()[0]) == len(CAPITALS)
