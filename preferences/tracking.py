"""Preferences in MLflow: figures as metrics, a table of the preferences in force, and assessments of responses."""

import json
from collections import Counter, defaultdict
from datetime import datetime

from django.db.models import Max, Q

from hub.protocols.messages import JSON
from preferences.insight.agreement import compute_agreement
from preferences.models import Issue, Preference
from preferences.selectors import current_preferences, with_related_objects
from preferences.sides import tokens_to_phrases
from runs.models import Response, Run
from runs.tracking.additions import AdditionSource, Assessment, LogAddition, SourceType

_OUTCOMES = {"first": ("won", "lost"), "second": ("lost", "won"), "tie": ("tied", "tied"), "both_bad": ("bad", "bad")}
_RATIONALE = 10_000  # characters; a TEXT column of MySQL holds 65,535 bytes
_VALUES = {"won": "better", "lost": "worse", "tied": "tie", "bad": "both bad"}
_SOURCES: dict[str, SourceType] = {
    Preference.Source.HUMAN: "HUMAN",
    Preference.Source.LLM: "LLM_JUDGE",
    Preference.Source.EXECUTION: "CODE",
}


class PreferenceAdditions(AdditionSource):
    """Additions to the log of a run: its preferences in force."""

    def latest_changes(self) -> dict[int, datetime]:
        return dict(Preference.objects.order_by().values_list("run").annotate(Max("created_at")))

    def addition(self, run: Run) -> LogAddition:
        """Return the metrics and the table `judgments` of a run; nothing if it has no preferences.

        Metrics: `judgments.<source>`, `agreement.<figure>` (with `.n`, `.low`, `.high`), and for each environment and
        model, `judged.<source>.won`, `.lost`, `.tied` and `.bad`.
        """
        rows = current_preferences().filter(run=run)
        table = [_row(item) for item in with_related_objects(rows).prefetch_related("issues__category").order_by("id")]
        if not table:
            return LogAddition()
        counts = Counter(str(row["source"]) for row in table)
        metrics = {f"judgments.{source}": float(counts[source]) for source in Preference.Source.values}
        for name, _, figure in compute_agreement(rows).figures:
            values = {"": figure.value, ".n": figure.n, ".low": figure.low, ".high": figure.high}
            if figure.value is not None:
                metrics |= {f"agreement.{name}{suffix}": float(v) for suffix, v in values.items() if v is not None}
        return LogAddition(metrics=metrics, cells=_cells(run), tables={"judgments": table})

    def assessments(self, run: Run) -> dict[int, list[Assessment]]:
        """Return the assessments of each response: preferences in force, and before them overridden suggestions."""
        wanted = Q(successor__isnull=True) | Q(answers__successor__isnull=True, answers__suggestion_taken=False)
        rows = with_related_objects(Preference.objects.filter(run=run).filter(wanted).distinct())
        found: dict[int, list[Assessment]] = defaultdict(list)
        for preference in rows.prefetch_related("issues__category").order_by("id"):
            for index, response in enumerate((preference.first, preference.second)):
                found[response.pk].append(_assessment(preference, response, _OUTCOMES[preference.verdict][index]))
        return found


def _cells(run: Run) -> dict[tuple[int, int], dict[str, float]]:
    """Return the metrics of each environment and model. A source with one outcome has the other outcomes, too, as 0."""
    columns = ("first__run_environment", "first__run_model", "second__run_model", "source", "verdict")
    counts: dict[tuple[int, int, str], Counter[str]] = defaultdict(Counter)
    for environment, first, second, source, verdict in current_preferences().filter(run=run).values_list(*columns):
        for model, outcome in zip((first, second), _OUTCOMES[verdict], strict=True):
            counts[environment, model, source][outcome] += 1
    cells: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for (environment, model, source), outcomes in counts.items():
        for outcome in _VALUES:
            cells[environment, model][f"judged.{source}.{outcome}"] = float(outcomes[outcome])
    return cells


def _row(preference: Preference) -> dict[str, JSON]:
    """Return the row of a preference in the table: flat, without the texts of the responses."""
    first, second = preference.first, preference.second
    chosen = preference.chosen
    return {
        "preference": preference.pk,
        "environment": str(preference.version),
        "case": preference.case.external_id,
        "source": preference.source,
        "by": _decider(preference),
        "verdict": preference.verdict,
        "preferred": chosen.run_model.label if chosen else None,
        "first_model": first.run_model.label,
        "first_response": first.pk,
        "first_status": first.status,
        "second_model": second.run_model.label,
        "second_response": second.pk,
        "second_status": second.status,
        "attempts": [first.attempt, second.attempt],
        "confidence": preference.confidence,
        "order_sensitive": preference.order_sensitive,
        "suggestion": preference.suggestion_id,
        "suggestion_taken": preference.suggestion_taken,
        "critique": tokens_to_phrases(preference.critique),
        "issues": [tokens_to_phrases(_issue_text(issue)) for issue in preference.issues.all()],
        "seconds": preference.seconds,
        "created_at": preference.created_at.isoformat(),
        "config_hash": preference.config_hash,
    }


def _decider(preference: Preference) -> str:
    if preference.reviewer is not None:
        return preference.reviewer.username
    return preference.judge or preference.source


def _issue_text(issue: Issue) -> str:
    quote = f": {issue.quote!r}" if issue.quote else ""
    return f"{issue.category.slug} ({issue.severity}){quote}{f', {issue.note}' if issue.note else ''}"


def _assessment(preference: Preference, response: Response, outcome: str) -> Assessment:
    other = preference.second if response == preference.first else preference.first
    label = other.run_model.label
    if other.run_model_id == response.run_model_id:
        label = f"{label}, attempt {other.attempt}"
    named = "this response", "the other response"
    first, second = named if response == preference.first else reversed(named)
    issues = [
        tokens_to_phrases(_issue_text(issue), first=first, second=second)
        for issue in preference.issues.all()
        if issue.response_id == response.pk
    ]
    critique = tokens_to_phrases(preference.critique, first=first, second=second)
    metadata = {
        "llmeval.preference": str(preference.pk),
        "llmeval.other_response": str(other.pk),
        "llmeval.config_hash": preference.config_hash,
    }
    if preference.confidence is not None:
        metadata["llmeval.confidence"] = str(preference.confidence)
    if issues:
        metadata["llmeval.issues"] = json.dumps(issues, ensure_ascii=False)
    return Assessment(
        key=f"preference {preference.pk}",
        name=f"against {label}",
        value=_VALUES[outcome],
        source_type=_SOURCES[preference.source],
        source=_decider(preference),
        rationale="\n".join([*filter(None, [critique]), *issues])[:_RATIONALE],
        overrides=f"preference {preference.suggestion_id}" if preference.suggestion_taken is False else "",
        metadata=metadata,
    )
