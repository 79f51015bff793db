"""What a run's page, its files and its JSON show: figures as data, on a terminal, as one HTML file."""

from runs.reports.html import render_html
from runs.reports.terminal import print_report
from runs.results.aggregate import CellResult, results_json, run_results, stage_sentences

__all__ = ["CellResult", "print_report", "render_html", "results_json", "run_results", "stage_sentences"]
