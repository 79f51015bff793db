"""Services that write runs: create, resume, cancel, interrupt."""

import importlib.metadata
import logging
import platform
from contextlib import suppress

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from hub.common import leases, wording
from hub.common.errors import Conflict, UserError
from hub.models import Team
from hub.protocols.messages import JSON
from hub.services import import_bundle
from hub.teams.visibility import may_see
from runs.config.parsing import parse_config
from runs.config.resolve import SelectedEnvironment, config_hash, fingerprint, source_for_command
from runs.config.schema import RunConfig
from runs.leases import LEASE, LeaseLost, RunBusy
from runs.limits.team_quotas import check_new_run, check_spend
from runs.missing import expected_responses, models_to_call, too_long_responses
from runs.models import ACTIVE, ENDED, ModelEndpoint, Run, RunEnvironment, RunModel
from runs.providers.base import ModelSpec
from runs.providers.registry import costs_money
from runs.selectors import (
    explain_unusable_model,
    find_disabled_model,
    find_environment_of_another_team,
    find_model_of_another_team,
    get_run,
)
from runs.spending import change_budget, check_budget
from runs.tracking.config import TrackingConfig
from runs.transitions import StatusConflict, change_status

_STOPS_WITHIN_S = 5  # usual time in which a cancelled run stops
STORED_IS_KEPT = "Stored responses are kept."
# Registered models that replay recorded answers: name -> the key `model` of the provider `demo`.
DEMO_MODELS = {"demo": "careful", "demo-hasty": "hasty"}
logger = logging.getLogger(__name__)


class RunActive(Conflict):
    """The run has not ended, so it cannot be deleted."""


class RunInProgress(Conflict):
    """The run cannot be resumed, because it has not ended. If it is being cancelled, it may be in a few seconds."""

    def __init__(self, run: Run) -> None:
        cancelled = Run.objects.filter(pk=run.pk, status__in=ACTIVE, cancel_requested=True).exists()
        super().__init__(
            "The run is being cancelled and has not stopped yet. Resume it in a few seconds."
            if cancelled
            else "The run is already in progress."
        )
        self.retry_after = _STOPS_WITHIN_S if cancelled else None


def create_run(
    *,
    config: RunConfig,
    environments: list[SelectedEnvironment],
    user: User | None = None,
    team: Team | None = None,
    owner: str = "",
    rescored_from: Run | None = None,
) -> Run:
    """Store a queued run: for the workers, or for *owner*, which then holds its lease from the start.

    Imports the bundles that the config names by path first. *team*: who owns the run; None: it is shared.
    *rescored_from*: the run whose responses it scores again. Raises QuotaExceeded.
    """
    versions = [
        item.version or import_bundle(bundle=item.path or "", cases=item.cases, owner=user, team=team)
        for item in environments
    ]
    remaining = expected_responses((item.count for item in environments), len(config.models), config.attempts)
    with transaction.atomic():
        if team is not None:
            check_new_run(team, [spec for spec in config.all_specs() if costs_money(spec)])
        run = Run.objects.create(
            name=config.name,
            config=config.stored(),
            config_hash=config_hash(config, environments),
            created_by=user,
            team=team,
            rescored_from=rescored_from,
            host=_host(),
            tracking_state=_tracking_state(config),
            remaining=remaining,
            lease_owner=owner,
            lease_until=leases.end_after(LEASE) if owner else None,
            ready_at=Now(),
        )
        run.refresh_from_db(fields=["lease_until", "ready_at"])
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
    logger.info(
        "run %s created: %s environments, %s models, %s responses to come",
        run.pk,
        len(environments),
        len(config.models),
        remaining,
        extra={"run_id": run.pk, "user_id": user.pk if user else None},
    )
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


def _host() -> dict[str, JSON]:
    packages = ("django", "openai", "mlflow", "pydantic")
    return {
        "machine": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }


def config_of(run: Run) -> RunConfig:
    """Return the stored config of *run*. Raises ConfigError if a recording or variable of it no longer exists."""
    source = source_for_command(settings.BASE_DIR, f"run {run.pk}")  # its paths are absolute, so any folder serves
    return parse_config(run.config, source)


def resume_run(
    *,
    run: Run,
    owner: str = "",
    budget_usd: float | None = None,
    user: User | None = None,
    retry_too_long: bool = False,
) -> bool:
    """Make *run* ready to be executed again, with another chance for models that were stopped.

    owner: holder of the lease, if the caller is going to execute the run itself. Without an owner a run that has ended
    is queued for the workers. *budget_usd*: its new budget, which *user* gives; it has to exceed what is spent. None:
    the budget stays, and must not be spent. retry_too_long: request responses again whose conversation was too long for
    the model. Returns False if the run is active, or held by another process. Raises QuotaExceeded, BudgetError,
    UserError if *user* may not resume the run for its team or if a model is disabled, and RunNotFound if the run
    was deleted.
    """
    if not owner and run.status in ACTIVE:
        return False
    if user is not None:
        _check_teams(run, user)
    if user is not None or run.created_by_id is not None:  # a command may describe models that are not registered
        _check_models_are_enabled(run, user, retry_too_long=retry_too_long)
    check_budget(run, budget_usd)
    if run.team is not None:
        specs = [ModelSpec.model_validate(row.spec) for row in run.models.all()]
        check_spend(run.team, [spec for spec in specs if costs_money(spec)])
    with transaction.atomic():
        get_run(run.pk, lock=True)  # it may have been deleted since it was read
        if owner and run.status in ACTIVE:  # left behind by a process that ended
            Run.objects.filter(pk=run.pk, lease_owner=owner).update(cancel_requested=False)
        elif not owner and Run.objects.filter(pk=run.pk, status__in=ACTIVE).exists():
            return False
        else:
            try:
                change_status(run, Run.Status.QUEUED, owner=owner, cancel_requested=False)
            except (StatusConflict, RunBusy):
                return False
        if budget_usd is not None:
            change_budget(run, budget_usd, user)
        if retry_too_long:  # errors of any other kind are requested again
            too_long_responses(run).update(error_kind="http")
        if run.models.exclude(role="").exclude(stopped="").exists():
            # Responses of finished shards may be missing, see `Block`.
            run.shards.filter(done=True).update(done=False, lease_owner="", lease_until=None)
        run.models.update(stopped="")
        logged = Run.objects.filter(pk=run.pk, tracking_state=Run.TrackingState.LOGGED)
        if logged.update(tracking_state=Run.TrackingState.PENDING):  # the log has the results from before
            run.tracking_state = Run.TrackingState.PENDING
    return True


def _check_teams(run: Run, user: User) -> None:
    """Raise UserError if *run* uses something of a team that does not own the run: its quota would not count calls."""
    environment = find_environment_of_another_team(run)
    if environment is not None:
        raise UserError(
            f"The environment {environment.slug!r} belongs to the team {environment.team}, and run {run.pk} does not. "
            "Move the run to that team before you resume it, so that its quota counts the calls.",
            "environments",
        )
    endpoint = find_model_of_another_team(run)
    if endpoint is None:
        return
    if not may_see(user, endpoint):
        raise UserError(wording.sentence(explain_unusable_model(user, endpoint.name)), "models")
    raise UserError(
        f"The model {endpoint.name!r} belongs to the team {endpoint.team}, and run {run.pk} does not. Move the run to "
        "that team before you resume it, so that its quota counts the calls.",
        "models",
    )


def _check_models_are_enabled(run: Run, user: User | None, *, retry_too_long: bool) -> None:
    """Raise UserError if a resume of *run* would call a registered model that was disabled since the run started."""
    endpoint = find_disabled_model(models_to_call(run, retry_too_long=retry_too_long))
    if endpoint is not None:
        reason = explain_unusable_model(user, endpoint.name)
        raise UserError(f"Run {run.pk} cannot be resumed: {wording.end_sentence(reason)}", "models")


def cancel_run(*, run: Run) -> bool:
    """Cancel *run*: at once if no process executes it, otherwise within seconds. Return False if it had ended."""
    try:
        change_status(run, Run.Status.CANCELLED)
    except (StatusConflict, RunBusy):
        requested = Run.objects.filter(pk=run.pk, status__in=ACTIVE).update(cancel_requested=True)
        run.refresh_from_db()
        return requested > 0
    return True


def interrupt_run(*, run: Run, owner: str = "") -> None:
    """Mark *run* as interrupted, unless it has ended or another process executes it."""
    with suppress(StatusConflict, RunBusy, LeaseLost):
        change_status(run, Run.Status.INTERRUPTED, owner=owner, message=STORED_IS_KEPT)
    run.refresh_from_db()


def fail_run(*, run: Run, message: str, owner: str) -> None:
    """Mark *run* as failed, unless it has ended or *owner* no longer holds its lease."""
    with suppress(StatusConflict, LeaseLost):
        change_status(run, Run.Status.FAILED, owner=owner, message=message)


def move_run(*, run: Run, team: Team | None) -> None:
    """Make *team* the owner of *run*; None: share it. Raises RunActive if the run has not ended."""
    if not Run.objects.filter(pk=run.pk, status__in=ENDED).update(team=team):
        raise RunActive(f"Run {run.pk} is {run.get_status_display()}. Wait until it has ended, or cancel it.")
    run.team = team


def register_demo_models() -> None:
    """Register the recorded demo models. Existing models of these names are left as they are, also if disabled."""
    for name, manner in DEMO_MODELS.items():
        ModelEndpoint.objects.get_or_create(
            name=name,
            defaults={"provider": "demo", "model": manner, "family": "demo", "price_input": 0.0, "price_output": 0.0},
        )


def delete_run(*, run: Run, user: User | None = None) -> None:
    """Delete *run* so that it can be restored: all lists, REST and comparisons hide it, and nothing is removed.

    Raises RunActive if the run has not ended.
    """
    rows = Run.objects.filter(pk=run.pk, status__in=ENDED, deleted_at=None)
    if not rows.update(deleted_at=timezone.now(), deleted_by=user):
        run.refresh_from_db()
        if run.deleted_at is None:
            raise RunActive(f"Run {run.pk} is {run.get_status_display()}. Cancel it first, then delete it.")
        return
    run.refresh_from_db()
    logger.info("run %s deleted", run.pk, extra={"run_id": run.pk, "user_id": user.pk if user else None})


def restore_run(*, run: Run) -> None:
    """Show a deleted run again; a run that is not deleted is unchanged."""
    if Run.objects.filter(pk=run.pk, deleted_at__isnull=False).update(deleted_at=None, deleted_by=None):
        logger.info("run %s restored", run.pk, extra={"run_id": run.pk})
    run.refresh_from_db()
