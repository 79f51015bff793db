"""Report of an export of preferences: counts, the linter's result, and the sources of the rows."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hub.common.wording import decimals, percent
from preferences.exporters.linter import LintFigures, LintResult
from preferences.models import Preference
from runs.exports.protocol import ExportReport, JSONObject


@dataclass(slots=True)
class PreferenceReport(ExportReport):
    """Result of an export. All but `lint` are of the written rows; `preferences` are ids."""

    lint: LintResult = field(default_factory=LintResult)
    preferences: set[int] = field(default_factory=set)
    sources: Counter[str] = field(default_factory=Counter)
    environments: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)

    def to_json(self) -> JSONObject:
        """Return what every export reports, and as `kept` how many preferences are in the rows, with the figures.

        `dropped` is an earlier name of `left_out`.
        """
        return {
            **ExportReport.to_json(self),
            "kept": len(self.preferences),
            "dropped": dict(self.left_out),
            **self.figures(),
        }

    def figures(self) -> LintFigures:
        """Return the figures of the linter."""
        return self.lint.figures(self.preferences)

    def figure_lines(self) -> Iterator[str]:
        """Yield a sentence for each figure of the linter that is known."""
        figures = self.figures()
        if figures["first_chosen"] is not None:
            yield f"The pair's first response was chosen in {percent(figures['first_chosen'])} of the pairs."
        if figures["length_correlation"] is not None:
            correlation = decimals(figures["length_correlation"], 2, sign="+")
            yield f"Correlation between being longer and being chosen: {correlation}."

    def add_source(self, preference: Preference) -> None:
        """Record where a written preference comes from."""
        self.preferences.add(preference.pk)
        self.sources[preference.get_source_display()] += 1
        self.environments.add(f"{preference.version} ({preference.version.environment.license or 'no license given'})")
        self.models |= {preference.first.run_model.label, preference.second.run_model.label}
        self.runs.add(preference.run_id)
