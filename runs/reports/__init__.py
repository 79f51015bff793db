"""Reports on the results of runs: on a terminal, as one HTML file, as JSON, on pages."""

from runs.reports.document import results_json, stage_sentences
from runs.reports.html import render_html
from runs.reports.terminal import print_report

__all__ = ["print_report", "render_html", "results_json", "stage_sentences"]
