"""Columns of the report: each is in every kind of report, with the same figure."""

import csv
import io
import json
from pathlib import Path

import pytest
from django.test import Client
from rich.console import Console

from hub.models import Case
from runs.models import Run
from runs.reports import print_report, render_html, results_json
from runs.reports.columns import COLUMNS, TABLE_COLUMNS, Column, rounded_cost
from runs.results.stored import get_results
from runs.tracking.artifacts import flatten
from runs.tracking.job import build_job
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version
from tests.markup import markup
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    run = stored_run(stored_version(cases=10), price={"input": 1.0, "output": 2.0})
    stored_outcomes(run, "ppppppfeu-")
    return run


@pytest.mark.parametrize("column", TABLE_COLUMNS, ids=lambda column: column.key)
def test_each_column_is_in_every_report(column: Column, run: Run, client: Client, tmp_path: Path) -> None:
    (cell,) = get_results(run)
    figure = column.text(cell)
    out = io.StringIO()
    print_report(run, Console(file=out))
    assert column.short_title in out.getvalue() and figure in out.getvalue()
    html = markup(render_html(run))
    assert f">{column.title}</th>" in html and f">{figure}<" in html
    client.force_login(member("Curator"))
    page = markup(client.get(f"/runs/{run.pk}/"))
    assert f">{column.title}</th>" in page and f">{figure}<" in page
    (result,) = json.loads(json.dumps(results_json(run)))["results"]
    assert column.key in result
    build_job(run, tmp_path, experiment="e", artifact_root=None, traces="none")
    header = next(csv.reader((tmp_path / "run" / "results.csv").open()))
    assert any(name.partition(".")[0] == column.key for name in header)


def test_keys_are_unique() -> None:
    keys = [column.key for column in COLUMNS]
    assert len(keys) == len(set(keys))


def test_documentation_describes_each_column() -> None:
    section = Path("docs/statistics.md").read_text().partition("## Columns of the report")[2].partition("\n## ")[0]
    for column in TABLE_COLUMNS:
        assert f"`{column.key}`" in section and f"`{column.short_title}`" in section, column.key


def test_every_number_of_the_document_is_a_metric_in_mlflow(run: Run, tmp_path: Path) -> None:
    (result,) = json.loads(json.dumps(results_json(run)))["results"]
    job = build_job(run, tmp_path, experiment="e", artifact_root=None, traces="none")
    metrics = job["cells"][0]["metrics"]
    for key, value in flatten(result):
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert metrics[key] == value, key
    for key in ("ci95", "mean_score_ci95"):
        assert [metrics[f"{key}.low"], metrics[f"{key}.high"]] == result[key]


def test_small_costs_are_not_rounded_to_zero(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=3), price={"input": 0.005, "output": 0.01}, cost_usd=3.9e-7)
    for case in Case.objects.order_by("position"):
        stored_response(run, case, cost_usd=1.3e-7, role_cost_usd=1.23456789e-8)
    document = results_json(run)
    (result,) = json.loads(json.dumps(document))["results"]
    assert document["cost_usd"] == 3.9e-7
    assert (result["cost_usd"], result["role_cost_usd"]) == (4.27037e-7, 3.7037e-8)
    assert result["cost_per_correct_usd"] == 1.42346e-7
    build_job(run, tmp_path, experiment="e", artifact_root=None, traces="none")
    (row,) = csv.DictReader((tmp_path / "run" / "results.csv").open())
    assert float(row["cost_usd"]) == result["cost_usd"]


@pytest.mark.parametrize(
    ("usd", "rounded"),
    [(0.0, 0.0), (None, None), (1234.56789012, 1234.56789), (0.0123456789, 0.0123457), (2.34567891e-6, 2.34568e-6)],
)
def test_costs_keep_six_decimals_or_significant_digits(usd: float | None, rounded: float | None) -> None:
    assert rounded_cost(usd) == rounded
