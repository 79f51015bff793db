"""Creation of the run that scores the stored responses of another run again."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from hub.common.errors import Conflict, UserError
from hub.common.wording import counted, end_sentence
from hub.models import Case, EnvironmentVersion
from hub.protocols.messages import JSON
from runs.config.parsing import read_config_text
from runs.config.resolve import resolve_config, source_for_command
from runs.config.schema import RunConfig
from runs.exports.recordings import (
    SCORING_ERRORS,
    can_be_replayed,
    export_responses,
    recording_name,
    without_answer,
)
from runs.models import ENDED, Response, Run, RunEnvironment
from runs.rescoring.recordings import new_folder
from runs.selectors import models_under_test, role_models
from runs.services import create_run

_NAME = 120  # characters
_RESCORED = " (re-scored)"
OTHER_INPUT = "the case asks something else now"
GONE = "the case is not in the current version any more"


class RescoreError(UserError):
    """The responses of a run cannot be scored again; the message says why."""


class RunNotEnded(RescoreError, Conflict):
    """The run is still in progress, so its responses can be scored again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescoring:
    """A run that scores the responses of `run.rescored_from` again. `left_out` counts responses by reason.

    same_versions: no environment has a newer version than the first run used, so that the rules are the same.
    """

    run: Run
    config: RunConfig
    left_out: dict[str, int]
    same_versions: bool

    def notes(self) -> list[str]:
        """Return sentences about what the user may not expect."""
        unchanged = "No environment has a newer version, so the rules are the same. Import a changed bundle first."
        left_out = [f"Left out: {counted(count, 'response')}, {reason}." for reason, count in self.left_out.items()]
        return [unchanged, *left_out] if self.same_versions else left_out


def create_rescoring(*, run: Run, user: User | None = None, owner: str = "") -> Rescoring:
    """Create a run of the current versions of the environments of *run* in which the stored responses are replayed.

    The replies of role models (simulated users, judges) are replayed, too. Cases whose input differs from what the
    models were asked are left out. *owner* and the queue are those of `create_run`. Raises RescoreError.
    """
    if run.status not in ENDED:
        raise RunNotEnded(f"Run {run.pk} is {run.get_status_display()}. Wait until it has ended, or cancel it.")
    left_out: Counter[str] = Counter()
    stored = run.environments.select_related("version__environment__latest").order_by("position")
    environments = [found for item in stored if (found := _environment(item, left_out)) is not None]
    if not environments:
        errored = Response.objects.filter(run_environment__run=run, status=Response.Status.ERRORED)
        left_out[without_answer(Response.Status.ERRORED)] += errored.count() - sum(
            1 for _ in _only_scoring_failed(errored)
        )
        reasons = "; ".join(f"{counted(count, 'response')}: {reason}" for reason, count in left_out.items() if count)
        said = f"Run {run.pk} has no response that can be scored again. {reasons}"
        raise RescoreError(end_sentence(said.strip()))
    folder = new_folder(run)
    try:
        for reason, count in export_responses(run, folder).left_out.items():
            left_out[reason] += count
        source = source_for_command(settings.BASE_DIR, f"run {run.pk}")
        resolved = resolve_config(read_config_text(json.dumps(_config(run, environments, folder)), source))
        created = create_run(
            config=resolved.config,
            environments=resolved.environments,
            user=user,
            team=run.team,
            owner=owner,
            rescored_from=run,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    same_versions = all(_current_version(item) == item.version for item in stored)
    return Rescoring(run=created, config=resolved.config, left_out=dict(left_out), same_versions=same_versions)


def _current_version(run_environment: RunEnvironment) -> EnvironmentVersion:
    return run_environment.version.environment.latest or run_environment.version


def _environment(run_environment: RunEnvironment, left_out: Counter[str]) -> dict[str, JSON] | None:
    """Return the entry of the config for the current version, or None if no case can be replayed.

    Errored responses without an answer are not counted here: `export_responses` leaves them out, too, and counts them.
    """
    version = _current_version(run_environment)
    stored = Response.objects.filter(run_environment=run_environment)
    asked = stored.exclude(status=Response.Status.ERRORED).order_by("case__position")
    responses = Counter(asked.values_list("case__external_id", "case__input_digest").iterator(chunk_size=2000))
    responses.update(
        (response.case.external_id, response.case.input_digest)
        for response in _only_scoring_failed(stored.filter(status=Response.Status.ERRORED))
    )
    current = dict(Case.objects.filter(version=version).values_list("external_id", "input_digest"))
    cases = []
    for (case, digest), count in responses.items():
        if case not in current:
            left_out[GONE] += count
        elif current[case] != digest:
            left_out[OTHER_INPUT] += count
        else:
            cases.append(case)
    if not cases:
        return None
    return {"environment": _reference(version), **({} if len(cases) == len(current) else {"cases": list(cases)})}


def _only_scoring_failed(errored: QuerySet[Response]) -> Iterator[Response]:
    """Yield the *errored* responses that have a complete answer, in the order of their cases."""
    found = errored.filter(error_kind__in=SCORING_ERRORS).select_related("case", "run_environment__version")
    return filter(can_be_replayed, found.order_by("case__position").iterator(chunk_size=200))


def _reference(version: EnvironmentVersion) -> str:
    return f"{version.environment.slug}@{version.version}"


def _config(run: Run, environments: list[dict[str, JSON]], folder: Path) -> dict[str, JSON]:
    """Return the config of the new run: that of *run* with recordings for models, and without pairs and judges."""
    models: list[JSON] = []
    for model in models_under_test(run):
        recording = _recording(folder, model.label, model.label, run)
        if recording is not None:
            models.append(recording)
    if not models:
        raise RescoreError(f"Run {run.pk} has no response with an answer, so there is nothing to score again.")
    roles: dict[str, JSON] = {}
    for role, members in role_models(run).items():
        if role not in run.config.get("roles", {}):
            continue
        recordings = [_recording(folder, f"{role}-{member.label}", member.label, run) for member in members]
        if None in recordings:
            raise RescoreError(
                f"The replies of the models for the role {role} are not stored, and scoring again asks no model."
            )
        roles[role] = list(recordings)
    limits = {
        key: value for key, value in run.config.get("limits", {}).items() if key in ("case_seconds", "turns", "retries")
    }
    kept = {key: run.config[key] for key in ("attempts", "concurrency", "sandbox", "seed") if key in run.config}
    return {
        **kept,
        "name": f"{run.name.removesuffix(_RESCORED)[: _NAME - len(_RESCORED)]}{_RESCORED}",
        "environments": list(environments),
        "models": models,
        "limits": {**limits, "identical_errors": 0},
        "tracking": {"mlflow": False},
        **({"roles": roles} if roles else {}),
    }


def _recording(folder: Path, name: str, label: str, run: Run) -> dict[str, JSON] | None:
    """Return a model that replays the file *name* of *folder*, or None if there is none."""
    path = folder / f"{recording_name(name)}.jsonl"
    if not path.exists():
        return None
    return {"name": label, "provider": "replay", "responses": str(path), "recorded_from": f"run {run.pk}"}
