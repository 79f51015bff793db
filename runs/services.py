"""Writing runs: create one from a config that was found sound, and make one that has ended ready to go on."""

import importlib.metadata
import platform
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from hub.services import import_bundle
from runs.config.parsing import parse_config
from runs.config.resolve import SelectedEnvironment, config_hash, fingerprint, source_for_command
from runs.config.schema import RunConfig
from runs.leases import LEASE
from runs.models import Run, RunEnvironment, RunModel
from runs.providers.base import ModelSpec
from runs.tracking.config import TrackingConfig

KEPT = "What was stored is kept."


def create_run(
    *, config: RunConfig, environments: list[SelectedEnvironment], user: User | None = None, owner: str = ""
) -> Run:
    """Store a run, queued: for the workers, or for *owner*, who holds its lease from the start.

    Bundles named by path are imported first.
    """
    versions = [item.version or import_bundle(bundle=item.path or "", owner=user) for item in environments]
    with transaction.atomic():
        run = Run.objects.create(
            name=config.name,
            config=config.stored(),
            config_hash=config_hash(config, environments),
            created_by=user,
            host=_host(),
            tracking_state=_tracking_state(config),
            lease_owner=owner,
            lease_until=timezone.now() + LEASE if owner else None,
        )
        RunEnvironment.objects.bulk_create(
            RunEnvironment(
                run=run,
                version=version,
                position=i,
                selection=item.selection,
                case_positions=item.case_positions,
                case_count=item.count,
            )
            for i, (item, version) in enumerate(zip(environments, versions, strict=True))
        )
        rows = [_model_row(run, spec, position=i) for i, spec in enumerate(config.models)]
        for role, specs in config.role_specs().items():
            rows += [_model_row(run, spec, position=i, role=role) for i, spec in enumerate(specs)]
        RunModel.objects.bulk_create(rows)
    return run


def _tracking_state(config: RunConfig) -> Run.TrackingState:
    tracking = config.stage_configs.get("tracking")
    wanted = isinstance(tracking, TrackingConfig) and tracking.mlflow
    return Run.TrackingState.PENDING if wanted else Run.TrackingState.OFF


def _model_row(run: Run, spec: ModelSpec, *, position: int, role: str = "") -> RunModel:
    return RunModel(
        run=run,
        label=spec.name,
        role=role,
        position=position,
        provider=spec.provider,
        spec=spec.model_dump(mode="json", exclude_none=True),
        fingerprint=fingerprint(spec),
    )


def _host() -> dict[str, Any]:
    packages = ("django", "openai", "mlflow", "pydantic")
    return {
        "machine": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }


def config_of(run: Run) -> RunConfig:
    """The stored config of *run*, read back. Raises ConfigError where a recording or variable is gone."""
    source = replace(source_for_command(None, f"run {run.pk}"), lookup=settings.ENV.lookup)
    # Paths were made absolute when the config was first read, so that any folder serves as their base.
    from_root = replace(source, base_dir=settings.BASE_DIR)
    return parse_config(run.config, from_root)


def reopen_run(*, run: Run) -> None:
    """Make a run that has ended ready to go on: models that were stopped get another chance."""
    run.models.update(stopped="")
    run.status, run.message, run.cancel_requested = Run.Status.QUEUED, "", False
    run.finished_at = run.evaluated_at = None
    run.save(update_fields=["status", "message", "finished_at", "evaluated_at", "cancel_requested"])


def resume_run(*, run: Run) -> bool:
    """Queue a run that has ended, for the workers to go on with; whether this call did it."""
    with transaction.atomic():
        ended = Run.objects.filter(pk=run.pk).exclude(status__in=[Run.Status.QUEUED, Run.Status.RUNNING])
        if not ended.update(status=Run.Status.QUEUED):
            return False
        reopen_run(run=run)
    return True


def cancel_run(*, run: Run) -> None:
    """Stop a run: at once where it waits, within seconds where it is being executed. Ended runs stay as they are."""
    waiting = Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED, lease_owner="")
    if not waiting.update(status=Run.Status.CANCELLED, finished_at=timezone.now()):
        Run.objects.filter(pk=run.pk, status__in=[Run.Status.QUEUED, Run.Status.RUNNING]).update(cancel_requested=True)
    run.refresh_from_db()


def interrupt_run(*, run: Run) -> None:
    """End a run whose process was told to stop before it could say so itself; nothing where it has ended."""
    going = Run.objects.filter(pk=run.pk, status__in=[Run.Status.QUEUED, Run.Status.RUNNING])
    going.update(status=Run.Status.INTERRUPTED, message=KEPT, finished_at=timezone.now())
    run.refresh_from_db()


def fail_run(*, run: Run, message: str) -> None:
    """End a run that could not be executed, with the reason."""
    run.status, run.message, run.finished_at = Run.Status.FAILED, message, timezone.now()
    run.save(update_fields=["status", "message", "finished_at"])
