"""Factories of database rows for tests, with defaults for all that a test does not set."""

import io
import zipfile
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.core.files.base import ContentFile
from django.utils import timezone

from hub.bundles.loader import open_archive
from hub.common.digests import digest
from hub.models import Case, CaseDefect, Environment, EnvironmentVersion
from runs.models import Response, Run, RunEnvironment, RunModel, Score

# ---- environments ----------------------------------------------------------------------------------------------------


def stored_version(
    slug: str = "sums",
    cases: int | Sequence[dict[str, Any]] = 4,
    *,
    version: str = "1.0.0",
    held_out: bool = False,
    **manifest: Any,
) -> EnvironmentVersion:
    """A version with its cases in the database and no archive. *cases*: how many, or each one's `data`."""
    data = [{"id": f"c{i}", "input": f"{i} + 1?"} for i in range(cases)] if isinstance(cases, int) else list(cases)
    environment, _ = Environment.objects.get_or_create(
        slug=slug, defaults={"title": slug, "summary": slug, "category": "reasoning", "held_out": held_out}
    )
    row = EnvironmentVersion.objects.create(
        environment=environment,
        version=version,
        digest=digest([slug, version]),
        manifest={"spec": 1, "slug": slug, "version": version, **manifest},
        case_count=len(data),
    )
    Case.objects.bulk_create(
        Case(
            version=row,
            position=i,
            external_id=item["id"],
            data=item,
            input_digest=digest(item),
            scoring_digest=digest([item["id"], "scoring"]),
        )
        for i, item in enumerate(data)
    )
    return row


def stored_archive(version: EnvironmentVersion) -> EnvironmentVersion:
    """Give *version* a small archive, and the digest of it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("environment.yaml", f"slug: {version.environment.slug}\n")
    with open_archive(io.BytesIO(file.getvalue())) as bundle:
        version.digest = bundle.digest
    version.archive.save("bundle.zip", ContentFile(file.getvalue()), save=False)
    version.save(update_fields=["digest", "archive"])
    return version


def accepted_defect(case: Case, *, hours_ago: float) -> CaseDefect:
    return CaseDefect.objects.create(
        case=case,
        description="The target is wrong.",
        status=CaseDefect.Status.ACCEPTED,
        resolved_at=timezone.now() - timedelta(hours=hours_ago),
    )


# ---- runs ------------------------------------------------------------------------------------------------------------


def stored_run(
    versions: EnvironmentVersion | Sequence[EnvironmentVersion],
    models: Sequence[str] = ("alpha",),
    *,
    attempts: int = 1,
    provider: str = "openai",
    price: dict[str, float] | None = None,
    **fields: Any,
) -> Run:
    """A completed run of all cases of *versions* by *models*, without responses."""
    now = timezone.now()
    run = Run.objects.create(
        **{
            "name": "test run",
            "status": Run.Status.COMPLETED,
            "config": {"name": "test run", "attempts": attempts, "tracking": {"mlflow": False}},
            "config_hash": "0" * 64,
            "started_at": now,
            "finished_at": now,
            **fields,
        }
    )
    for i, version in enumerate([versions] if isinstance(versions, EnvironmentVersion) else versions):
        RunEnvironment.objects.create(run=run, version=version, position=i, case_count=version.case_count)
    for i, label in enumerate(models):
        spec = {"name": label, "provider": provider, **({"price": price} if price else {})}
        RunModel.objects.create(
            run=run, label=label, position=i, provider=provider, spec=spec, fingerprint=digest(label)
        )
    return run


def stored_response(run: Run, case: Case, status: str = "passed", *, model: str = "", **fields: Any) -> Response:
    """A response of *model* (by default the first) to *case*. A passed one scores 1, a failed one 0."""
    part = run.environments.get(version_id=case.version_id)
    response = _response(case, status, run_environment=part, run_model=_model_of(run, model), **fields)
    response.save(force_insert=True)
    return response


def stored_outcomes(run: Run, outcomes: str, *, model: str = "", version: EnvironmentVersion | None = None) -> None:
    """One response per case in order: `p` passed, `f` failed, `e` errored, `u` unscored, `-` none."""
    words = {"p": "passed", "f": "failed", "e": "errored", "u": "unscored"}
    part = run.environments.get(version=version) if version else run.environments.order_by("position")[0]
    run_model = _model_of(run, model)
    cases = Case.objects.filter(version_id=part.version_id).order_by("position")
    Response.objects.bulk_create(
        _response(case, words[letter], run_environment=part, run_model=run_model)
        for case, letter in zip(cases, outcomes, strict=True)
        if letter != "-"
    )


def _model_of(run: Run, label: str) -> RunModel:
    """The model with *label*, or the first one if it is empty."""
    models = run.models.filter(role="").order_by("position")
    return models.get(label=label) if label else models[0]


def _response(case: Case, status: str, **fields: Any) -> Response:
    """A response that is not stored yet."""
    return Response(
        **{
            "case": case,
            "status": status,
            "score": {"passed": 1.0, "failed": 0.0}.get(status),
            "reason": "" if status == "passed" else "It is wrong.",
            "messages": [
                {"role": "user", "content": case.data.get("input", "")},
                {"role": "assistant", "content": "an answer"},
            ],
            "text": "an answer",
            "finish_reason": "stop",
            "stop": "" if status == "errored" else "done",
            "turns": 1,
            **fields,
        }
    )


def stored_score(response: Response, rule: str = "answer", value: float | None = 0.0, **fields: Any) -> Score:
    return Score.objects.create(
        **{"response": response, "position": 0, "rule": rule, "type": "exact_match", "value": value, **fields}
    )
