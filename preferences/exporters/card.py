"""Dataset card of an export: its contents, provenance, what was left out, and warnings."""

from hub.common.wording import counted, percent
from preferences.exporters.formats.base import PreferenceFormat
from preferences.exporters.reports import PreferenceReport


def dataset_card(export_format: PreferenceFormat, report: PreferenceReport, data_file: str) -> str:
    """Return the card of an export as Markdown, with the front matter that the Hugging Face Hub reads."""
    figures = report.figures()
    balance = "-" if figures["first_chosen"] is None else percent(figures["first_chosen"])
    lengths = "-" if figures["length_correlation"] is None else f"{figures['length_correlation']:+.2f}"
    ties = len(report.lint.ties)
    lines = [
        "---",
        "configs:",
        "  - config_name: default",
        f"    data_files: {data_file}",
        "tags: [preference, llm-eval]",
        "---",
        "",
        "# Preferences",
        "",
        f"{counted(report.written, 'row')} in the format `{export_format.name}`: {export_format.summary}.",
        "",
        "## Provenance",
        "",
        f"- Decided by: {', '.join(f'{name} ({count:,})' for name, count in sorted(report.sources.items()))}",
        f"- Models compared: {', '.join(sorted(report.models))}",
        *(f"- Environment: {name}" for name in sorted(report.environments)),
        f"- Runs: {', '.join(map(str, sorted(report.runs)))}",
        "",
        "The provenance file names, for every line, the preference, responses, run, config and digests.",
        "",
        "## Limitations",
        "",
        f"- The pair's first response was chosen in {balance} of the pairs.",
        f"- Correlation between being longer and being chosen: {lengths}.",
        *(f"- {line}" for line in report.left_out_lines()),
        *([f"- Without a winner, in the file of ties: {ties:,}."] if export_format.decisive_only and ties else []),
        "",
    ]
    return "\n".join(lines)
