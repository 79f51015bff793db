"""Selectors that read runs: by id, by user, their cases, models and responses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from hub.common import wording
from hub.common.errors import NotFound
from hub.common.masking import mask
from hub.models import Case, Environment
from hub.protocols.calls import split_quote
from hub.protocols.messages import JSON
from hub.selectors import (
    foreign_environments,
    is_curator,
    list_foreign_environments,
    list_withheld_environments,
    may_see_content,
)
from hub.teams.visibility import foreign_team_ids, sees_all_teams, visible_to
from runs.models import EpisodeSession, ModelEndpoint, Response, Run, RunEnvironment, RunModel

# Keys of a model in a config that describe its endpoint. Only staff may see them.
ENDPOINT_KEYS = frozenset({"base_url", "api_key_env"})
# Keys whose value is the path of a recording or a bundle on the server. Only staff may see its folder.
_PATH_KEYS = frozenset({"responses", "path"})


class RunNotFound(NotFound):
    """There is no run with this id."""


def get_run(run_id: int | str, *, lock: bool = False) -> Run:
    """Return the run with this id, the latest for `latest`, or the latest with a tag for `latest:TAG`.

    Deleted runs are not found. Raises RunNotFound.

    lock: lock its row until the transaction ends.
    """
    rows = Run.objects.select_for_update(of=("self",)) if lock else Run.objects.all()
    if run_id == "latest" and (run := rows.filter(deleted_at=None).first()) is not None:
        return run
    word, _, tag = str(run_id).partition(":")
    if word == "latest" and tag:
        tagged = rows.filter(deleted_at=None, tags__name=tag.lower()).first()
        if tagged is None:
            raise RunNotFound(f"No run has the tag {tag.lower()}.")
        return tagged
    try:
        run = rows.get(pk=int(run_id))
    except (ValueError, OverflowError, Run.DoesNotExist):
        latest = Run.objects.filter(deleted_at=None).first()
        known = f"the latest is {latest.pk}" if latest else "none is stored yet"
        raise RunNotFound(f"There is no run {run_id}; {known}.") from None
    if run.deleted_at is not None:
        raise RunNotFound(
            f"Run {run.pk} is deleted. An administrator can restore it in the admin, "
            f"or with `manage.py runs restore {run.pk}`."
        )
    return run


def may_delete(user: User | AnonymousUser, run: Run) -> bool:
    """Return whether *user* may delete *run*: its owner and staff may."""
    return bool(user.is_staff or (user.pk and run.created_by_id == user.pk))


def visible_runs(user: User | AnonymousUser, *, deleted: bool = False) -> QuerySet[Run]:
    """Return the runs that *user* may see: shared ones and those of the user's teams.

    The user must also see all their environments, since a run shows their cases.

    deleted: include deleted runs, for data such as preferences that outlives them.
    """
    runs = Run.objects.select_related("created_by", "team__group").defer("host").filter(visible_to(user))
    if not deleted:
        runs = runs.filter(deleted_at=None)
    if sees_all_teams(user):
        return runs
    hidden = foreign_environments(user)
    if hidden == []:
        return runs
    return runs.filter(~Exists(RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment__in=hidden)))


def sees_all_runs(user: User | AnonymousUser) -> bool:
    """Return whether no run is hidden from *user*."""
    return is_curator(user) and not foreign_team_ids(user)


def visible_models(user: User | AnonymousUser) -> QuerySet[ModelEndpoint]:
    """Return the registered models that *user* may see: shared ones and those of the user's teams."""
    return ModelEndpoint.objects.select_related("team__group").filter(visible_to(user))


def list_usable_models(user: User | AnonymousUser | None) -> list[ModelEndpoint]:
    """Return the registered models in use that *user* may see, by name. None, for the command line: all."""
    return list(_seen_models(user).filter(enabled=True))


def explain_unusable_model(user: User | AnonymousUser | None, name: str) -> str:
    """Return why *user* cannot use the model *name*, as a clause: it is disabled, or not registered."""
    if _seen_models(user).filter(name=name, enabled=False).exists():
        return f"the model {name!r} is disabled; staff who register models can set it to 'In use' at /models/"
    known = [endpoint.name for endpoint in list_usable_models(user)]
    advice = wording.suggest(name, known) or "none is yet; staff register them at /models/"
    return f"no model is registered as {name!r}; {advice}"


def find_model_of_another_team(run: Run) -> ModelEndpoint | None:
    """Return a registered model that *run* calls and that belongs to another team than the run; None if none does.

    Models and runs can be moved after the run was created.
    """
    endpoints = _registered(list(run.models.all()))
    return next((each for each in endpoints if each.team is not None and each.team_id != run.team_id), None)


def find_environment_of_another_team(run: Run) -> Environment | None:
    """Return an environment of *run* that belongs to another team than the run; None if none does.

    Environments and runs can be moved after the run was created.
    """
    owned = Environment.objects.filter(versions__in=run.environments.values("version")).exclude(team=None)
    return owned.exclude(team=run.team_id).select_related("team").order_by("slug").first()


def find_disabled_model(models: Iterable[RunModel]) -> ModelEndpoint | None:
    """Return a registered model among *models* that was disabled; None if all are in use."""
    return next((endpoint for endpoint in _registered(models) if not endpoint.enabled), None)


def _registered(models: Iterable[RunModel]) -> list[ModelEndpoint]:
    """Return the registered models among *models*, by name."""
    # With the provider: a run that scores stored responses again has the names of the models, but asks none.
    called = {(model.label, model.provider) for model in models}
    found = ModelEndpoint.objects.select_related("team__group").filter(name__in=[label for label, _ in called])
    return [endpoint for endpoint in found.order_by("name") if (endpoint.name, endpoint.provider) in called]


def _seen_models(user: User | AnonymousUser | None) -> QuerySet[ModelEndpoint]:
    return ModelEndpoint.objects.select_related("team__group") if user is None else visible_models(user)


def visible_episodes(user: User) -> QuerySet[EpisodeSession]:
    """Return the episodes that *user* started, without those of environments that are hidden from the user by now."""
    # Not `foreign_environments`: this way a step reads the permissions of the user, but not the ids as well.
    hidden = list_foreign_environments(user).values("pk")
    return EpisodeSession.objects.filter(user=user).exclude(case__version__environment__in=hidden)


def sees_endpoints(user: User | AnonymousUser | None) -> bool:
    """Return whether *user* may see addresses, key variables and names of models at endpoints. None: an operator."""
    return user is None or user.is_staff


def shown_config(run: Run, user: User | AnonymousUser | None) -> object:
    """Return the config of *run*; without endpoints and folders of the server unless *user* may see them."""
    return run.config if sees_endpoints(user) else _without_server_details(run.config)


def shown_spec(model: RunModel, user: User | AnonymousUser) -> object:
    """Return the configuration of a model; without its endpoint and folders unless *user* may see them."""
    return model.spec if sees_endpoints(user) else _without_server_details(model.spec)


def _without_server_details(value: object) -> object:
    if isinstance(value, list):
        return [_without_server_details(item) for item in value]
    if not isinstance(value, dict):
        return value
    hidden = ENDPOINT_KEYS | ({"model"} if "provider" in value else set())
    return {
        key: Path(item).name if key in _PATH_KEYS and isinstance(item, str) else _without_server_details(item)
        for key, item in value.items()
        if key not in hidden
    }


def case_chunk(environment: RunEnvironment, after: int, size: int) -> list[Case]:
    """Return the next *size* cases that the run evaluates after position *after*, in order."""
    cases = Case.objects.filter(version_id=environment.version_id).order_by("position")
    if environment.case_positions is not None:
        wanted = [position for position in environment.case_positions if position > after][:size]
        return list(cases.filter(position__in=wanted))
    return list(cases.filter(position__gt=after, position__lt=environment.case_count)[:size])


# Aggregates over responses: the sum of the known costs, and the number of responses with an unknown cost.
KNOWN_COST = Sum(Coalesce("cost_usd", 0.0) + Coalesce("role_cost_usd", 0.0))
UNKNOWN_COSTS = Count("id", filter=Q(cost_usd=None) | Q(role_cost_usd=None))


class StoredCounts(NamedTuple):
    """What is stored of a run. cost_usd: the known costs. cost_unknown: whether some costs are unknown."""

    by_status: Mapping[str, int]
    cost_usd: float
    cost_unknown: bool


def stored_counts(run: Run) -> StoredCounts:
    """Return the number of stored responses by status, and their costs."""
    rows = (
        Response.objects.filter(run_environment__run=run)
        .order_by()
        .values("status")
        .annotate(count=Count("id"), cost=KNOWN_COST, unknown=UNKNOWN_COSTS)
    )
    counts = {row["status"]: row["count"] for row in rows}
    return StoredCounts(counts, sum(row["cost"] or 0.0 for row in rows), any(row["unknown"] for row in rows))


def models_under_test(run: Run) -> list[RunModel]:
    """Return the models that *run* evaluates, without those of roles, in the order of the config."""
    return list(run.models.filter(role="").order_by("position"))


def list_model_labels(run: Run) -> list[str]:
    """Return the labels of the models under test of *run*, in the order of the config."""
    return list(run.models.filter(role="").order_by("position").values_list("label", flat=True))


def role_models(run: Run) -> dict[str, list[RunModel]]:
    """Return the models that fill a role, by role, in the order of the config."""
    roles: dict[str, list[RunModel]] = {}
    for model in run.models.exclude(role="").order_by("role", "position"):
        roles.setdefault(model.role, []).append(model)
    return roles


TRACKING = "tracking"  # the stage whose errors quote MLflow, which may repeat what is logged, and ids
REASON_WITHHELD = "Held out: only the owner of the environment, curators and accounts with permission can see reasons."


# Kinds of errors whose reasons have messages of a bundle's code, or of code that read the case.
_ERRORS_OF_CONTENT = frozenset({"environment", "case", "internal"})


def reason_without_target(reason: str, status: str, error_kind: str) -> str:
    """Return what users who may not see the target of a response may read of its *reason*.

    Errors of endpoints and of the sandbox do not quote the target. But the reply of an endpoint may repeat the
    request of a judge.
    """
    if reason and (status != Response.Status.ERRORED or error_kind in _ERRORS_OF_CONTENT):
        return REASON_WITHHELD
    return split_quote(reason)[0]


def withholds_reasons(user: User | AnonymousUser, response: Response) -> bool:
    """Return whether *user* must not see what scoring says of *response*, because it may reveal the target."""
    return not may_see_content(user, response.run_environment.version.environment)


def may_see_log(user: User | AnonymousUser | None, run: Run) -> bool:
    """Return whether *user* may see the log of *run* in MLflow, with targets and reasons. None: an operator."""
    return user is None or not withheld_environments(user, run).exists()


def withheld_environments(user: User | AnonymousUser, run: Run) -> QuerySet[RunEnvironment]:
    """Return the environments of *run* whose content is withheld from *user*."""
    return run.environments.filter(version__environment__in=list_withheld_environments(user).values("pk"))


def is_held_out(run: Run) -> bool:
    """Return whether the content of an environment of *run* is withheld from some users."""
    held_out = Q(version__environment__held_out=True) | Q(version__environment__partly_held_out=True)
    return run.environments.filter(held_out).exists()


def stop_reason(model: RunModel) -> str:
    """Return why *model* was stopped, as everybody may read it who sees its run; "" if it was not."""
    return _without_reply(model.stopped, model.run) if model.stopped else ""


def shown_summaries(run: Run, user: User | AnonymousUser | None = None) -> dict[str, dict[str, JSON]]:
    """Return the summaries of the stages of *run* with errors as *user* may read them. None: an operator."""
    return {key: _shown_summary(key, summary, run, user) for key, summary in run.summaries.items()}


def _shown_summary(key: str, summary: dict[str, JSON], run: Run, user: User | AnonymousUser | None) -> dict[str, JSON]:
    error = summary.get("error")
    if not isinstance(error, str):
        return summary
    if key == TRACKING and not may_see_log(user, run):
        return {**summary, "error": REASON_WITHHELD}
    return {**summary, "error": _without_reply(error, run)}


def describe_failure(run: Run, error: Exception) -> str:
    """Return what everybody who sees *run* may read of the unexpected *error* that ended it or one of its stages.

    Such an error may quote the data of a case, so it is withheld if the run has held-out environments.
    """
    name = type(error).__name__
    if is_held_out(run):
        return f"{name}: the message is in the log of the process, because the run has a held-out environment."
    return mask(f"{name}: {error}")


def _without_reply(message: str, run: Run) -> str:
    """Return *message* without the reply of an endpoint, which may repeat the request of a judge with the target.

    Runs without held-out environments keep it.
    """
    own, reply = split_quote(message)
    return own if reply and is_held_out(run) else message


FLAGS = ("truncated", "refused", "limit")  # properties of responses that filters know
COUNTED = "counted"  # the flag of responses to cases that are not quarantined, which the figures of a run count


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFilters:
    """Responses of a run to select; fields that are not given do not restrict it.

    model: a label. environment: a slug. q: a part of the case's id or of the reason. flag: one of FLAGS, or `COUNTED`.
    reason: a pattern of `runs.results.breakdown.reasons`.
    """

    model: str = ""
    environment: str = ""
    q: str = ""
    flag: str = ""
    reason: str = ""


def responses_matching(
    rows: QuerySet[Response],
    *,
    versions: Iterable[int],
    q: str = "",
    flag: str = "",
    reason: str = "",
    withheld: QuerySet[RunEnvironment] | None = None,
) -> QuerySet[Response]:
    """Return the *rows* that match.

    versions: ids of the environment versions of these rows. q: a part of the case's id or of the reason. flag:
    one of FLAGS; `COUNTED`, which depends on the run, is left to the caller. reason: a regular expression that the
    reason matches. withheld: environments whose reasons are not searched, since that would reveal them letter by
    letter.
    """
    if flag in ("truncated", "refused"):
        rows = rows.filter(**{flag: True})
    elif flag == "limit":
        rows = rows.exclude(stop__in=["", "done"])
    shown = Q() if withheld is None else ~Q(run_environment__in=withheld.values("pk"))
    if reason:
        rows = rows.filter(shown, reason__regex=reason)
    if q:
        # The cases are looked up on their own, so that no database compares the id of a case once for each response.
        cases = Case.objects.filter(version__in=versions, external_id__icontains=q).order_by()
        rows = rows.filter(Q(case__in=cases.values("pk")) | (Q(reason__icontains=q) & shown))
    return rows
