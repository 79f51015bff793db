"""Record of a preference: its data and provenance as JSON, without the texts of the responses."""

from preferences.decision_fields import exported_values
from preferences.models import Preference
from preferences.sides import Side
from runs.exports.protocol import JSONObject
from runs.exports.provenance import response_provenance


def preference_record(preference: Preference) -> JSONObject:
    """Return a preference with all its provenance as JSON, without the texts of the responses."""
    defect = preference.defect
    return {
        "id": preference.pk,
        "verdict": preference.verdict,
        "source": preference.source,
        "reviewer": preference.reviewer.username if preference.reviewer else None,
        "judge": preference.judge or None,
        "judge_fingerprint": preference.judge_fingerprint or None,
        "prompt_version": preference.prompt_version or None,
        "confidence": preference.confidence,
        "order_sensitive": preference.order_sensitive,
        "orders": preference.orders,
        "order_critiques": [preference.tokens_to_phrases(text) for text in preference.order_critiques],
        "saw_evidence": preference.saw_evidence,
        "self_preference": preference.self_preference,
        "suggestion": preference.suggestion_id,
        "suggestion_taken": preference.suggestion_taken,
        "first_verdict": preference.first_verdict or None,
        "check_result": preference.check_result or None,
        "disputes_tests": preference.disputes_tests,
        "defect": {"id": defect.pk, "status": defect.status} if defect else None,
        "tests_found_wrong": preference.tests_found_wrong,
        "supersedes": preference.supersedes_id,
        **exported_values(preference),
        "issues": [
            {
                "side": preference.side_of(issue.response_id),
                "category": issue.category.slug,
                "severity": issue.severity,
                "note": preference.tokens_to_phrases(issue.note),
                "message": issue.message,
                "call": issue.call,
                "start": issue.start,
                "end": issue.end,
                "quote": issue.quote,
                "prefix": issue.prefix,
                "suffix": issue.suffix,
                "text_hash": issue.text_hash,
            }
            for issue in preference.issues.all()
        ],
        "evidence": preference.evidence,
        "environment": str(preference.version),
        "environment_digest": preference.version.digest,
        "case": preference.case.external_id,
        "input_digest": preference.input_digest,
        "scoring_digest": preference.scoring_digest,
        "run": preference.run_id,
        "config_hash": preference.config_hash,
        "mlflow": preference.run.tracking.get("parent"),
        "first": _side(preference, "first"),
        "second": _side(preference, "second"),
        "seconds": preference.seconds,
        "created_at": preference.created_at.isoformat(),
    }


def _side(preference: Preference, side: Side) -> JSONObject:
    """Return the identity of one of the two responses."""
    return response_provenance(preference.response(side), "response", "model", "model_fingerprint", "attempt")
