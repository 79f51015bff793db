"""Queries of the pages and REST API of runs: visible runs, filtered responses."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Lower
from django.http import Http404

from hub.common.wording import unknown_name
from hub.models import Case, CaseDefect, Team
from hub.teams.membership import choose_target
from hub.teams.visibility import owned_by
from runs.description import may_describe
from runs.models import ENDED, WITH_RESULTS, ModelEndpoint, Response, Run, RunEnvironment, RunModel, RunTag
from runs.reports.files import ReportFile
from runs.results.breakdown.reasons import pattern_regex
from runs.results.counting import quarantined_cases
from runs.results.stored import count_responses
from runs.selectors import (
    COUNTED,
    ResponseFilters,
    list_model_labels,
    may_delete,
    reason_without_target,
    responses_matching,
    visible_models,
    visible_runs,
    withheld_environments,
    withholds_reasons,
)

# Columns that lists can be sorted by: name in the query string -> field of the rows.
RUN_COLUMNS = {"run": "name_key", "status": "status", "took": "seconds", "cost": "cost_usd", "started": "id"}
RESPONSE_COLUMNS = {
    "case": "case__external_id",
    "status": "status",
    "model": "run_model__label",
    "environment": "run_environment__version__environment__slug",
    "score": "score",
    "ms": "latency_ms",
    "tokens": "output_tokens",
}
DEFERRED_FIELDS = ("messages", "text")  # large fields of a response, not loaded for lists


def get_visible_run(user: User | AnonymousUser, pk: int) -> Run:
    """Return run *pk*. Raises Http404 if it does not exist or *user* may not see it."""
    run = _find_visible_run(user, pk)
    if run is None:
        raise Http404(
            f"There is no run {pk}, or it was deleted, or it or one of its environments is private to others."
        )
    return run


def _find_visible_run(user: User | AnonymousUser, pk: int) -> Run | None:
    return visible_runs(user).defer(None).filter(pk=pk).first()


def may_register_models(user: User | AnonymousUser) -> bool:
    """Return whether *user* may register models, and so decides to which endpoint a key is sent."""
    return bool(user.is_staff and user.has_perm("runs.add_modelendpoint"))


def check_may_delete(user: User | AnonymousUser, run: Run) -> None:
    """Raise PermissionDenied unless *user* may delete *run*."""
    if not may_delete(user, run):
        raise PermissionDenied("Only the user who started the run and staff may delete it.")


def check_may_describe(user: User | AnonymousUser, run: Run) -> None:
    """Raise PermissionDenied unless *user* may change name, tags and note of *run*."""
    if not may_describe(user, run):
        raise PermissionDenied("Only the user who started the run and users who may cancel runs may describe it.")


def find_target(user: User, run: Run, slug: str) -> Team | None:
    """Return the team with *slug* to which *user* may move *run*; None: shared. Raises PermissionDenied, TeamError."""
    return choose_target(user, run, slug, creator_id=run.created_by_id, what="a run")


def filter_runs(
    user: User | AnonymousUser,
    *,
    status: str = "",
    environment: str = "",
    model: str = "",
    tag: str = "",
    q: str = "",
    team: str = "",
) -> QuerySet[Run]:
    """Return the visible runs that match all given filters, with their tags; *q* is a part of the name."""
    runs = visible_runs(user).filter(owned_by(team)).annotate(name_key=Lower("name")).prefetch_related("tags")
    if tag:
        runs = runs.filter(Exists(RunTag.objects.filter(run=OuterRef("pk"), name=tag.lower())))
    if status:
        runs = runs.filter(status=status)
    if environment:
        of_environment = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment__slug=environment)
        runs = runs.filter(Exists(of_environment))
    if model:
        runs = runs.filter(Exists(RunModel.objects.filter(run=OuterRef("pk"), role="", label=model)))
    if q:
        runs = runs.filter(name__icontains=q)
    return runs


def is_known_model(user: User | AnonymousUser, label: str) -> bool:
    """Return whether *user* may see a registered model with the name *label*, or a run of a model with this label."""
    runs = visible_runs(user).order_by().values("pk")
    return (
        visible_models(user).filter(name=label).exists()
        or RunModel.objects.filter(label=label, role="", run__in=runs).exists()
    )


def check_model(user: User | AnonymousUser, label: str) -> str:
    """Return *label*, the value of a filter. Raises ValidationError if it is not that of a known model."""
    if label and not is_known_model(user, label):
        known = visible_models(user).order_by("name").values_list("name", flat=True)
        raise ValidationError(unknown_name("model", label, known, none="none is registered yet"))
    return label


def filter_models(user: User | AnonymousUser, *, team: str = "") -> QuerySet[ModelEndpoint]:
    """Return the visible registered models, of *team* only if it is given."""
    return visible_models(user).filter(owned_by(team))


@dataclass(slots=True)
class RunContents:
    """Environment slugs and labels of the models under test of one run, in the order of its config.

    `priced`: whether at least one of its models, role models included, has a price.
    """

    environments: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    priced: bool = False


def get_run_contents(runs: list[Run]) -> dict[int, RunContents]:
    """Return the environments and models of each run, by run id."""
    contents = {run.pk: RunContents() for run in runs}
    environments = RunEnvironment.objects.filter(run__in=runs).order_by("run_id", "position")
    for pk, slug in environments.values_list("run_id", "version__environment__slug"):
        contents[pk].environments.append(slug)
    models = RunModel.objects.filter(run__in=runs, role="").order_by("run_id", "position")
    for pk, label in models.values_list("run_id", "label"):
        contents[pk].models.append(label)
    for pk in RunModel.objects.filter(run__in=runs, spec__price__isnull=False).values_list("run_id", flat=True):
        contents[pk].priced = True
    return contents


def find_comparable_run(user: User | AnonymousUser, run: Run) -> Run | None:
    """Return the run to compare *run* with, or None.

    This is the latest other run that has results and shares an environment with *run*. If there is none, it is *run*
    itself, provided that it has several models.
    """
    environments = run.environments.values("version__environment")
    shared = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment__in=environments)
    other = visible_runs(user).exclude(pk=run.pk).filter(Exists(shared), status__in=WITH_RESULTS).first()
    return other or (run if len(list_model_labels(run)) > 1 else None)


def get_exportable_run(user: User | AnonymousUser, pk: int) -> Run:
    """Return run *pk* if *user* may export its targets and reasons. Raises Http404 and PermissionDenied."""
    run = get_visible_run(user, pk)
    withheld = withheld_environments(user, run).select_related("version__environment").first()
    if withheld is not None:
        raise PermissionDenied(
            f"{withheld.version.environment.slug} is held out: only its owner, curators and accounts with permission "
            "may download files with its targets and reasons."
        )
    return run


def get_reportable_run(user: User | AnonymousUser, pk: int, file: ReportFile) -> Run:
    """Return run *pk* if *user* may download its report as *file*. Raises Http404 and PermissionDenied."""
    return get_visible_run(user, pk) if file.withholds else get_exportable_run(user, pk)


WITHOUT_SCORE = [Response.Status.ERRORED, Response.Status.UNSCORED]
RECENT_RUNS = 30  # ended runs that list_incomplete_runs checks


def list_incomplete_runs(user: User | AnonymousUser, limit: int) -> list[tuple[Run, dict[str, int]]]:
    """Return recent runs that failed or have responses without a score, with their number by status, latest first.

    A run is left out if a later run of the same config completed with a score for every response.
    """
    recent = list(visible_runs(user).filter(status__in=ENDED).exclude(status=Run.Status.CANCELLED)[:RECENT_RUNS])
    counts: dict[int, dict[str, int]] = {
        pk: {str(status): by_status[status] for status in WITHOUT_SCORE if by_status[status]}
        for pk, by_status in count_responses(recent).items()
    }
    repeated: set[str] = set()  # config hashes of completed runs
    incomplete = []
    for run in recent:
        if run.status == Run.Status.COMPLETED and not counts[run.pk]:
            repeated.add(run.config_hash)
        elif run.config_hash not in repeated:
            incomplete.append((run, counts[run.pk]))
    return incomplete[:limit]


def list_environments(run: Run) -> list[RunEnvironment]:
    """Return the environments of *run* with what lists of its responses show of them.

    `first_response` is the lowest id of their responses, or None.
    """
    first = Response.objects.filter(run_environment=OuterRef("pk")).order_by("id").values("id")[:1]
    version, environment = "version__version", "version__environment__"
    shown = ("slug", "held_out", "partly_held_out", "owner_id")  # by the last ones, may_see_content decides
    return list(
        run.environments.order_by("position")
        .select_related("version__environment")
        .only("run_id", version, *(environment + name for name in shown))
        .annotate(first_response=Subquery(first))
    )


def list_responses(environments: Iterable[RunEnvironment]) -> QuerySet[Response]:
    """Return the responses of *environments*, those of `list_environments`, without `DEFERRED_FIELDS`.

    They have the `case_name` and the `model_label`. `set_environments` completes the rows that are shown.
    """
    # With the ids as literals, databases use the index of run_environment and id. Without the lower limit, PostgreSQL
    # may read all earlier responses in the order of their ids: 1 to 3 s for the newest run among a million responses.
    first = {item.pk: getattr(item, "first_response", None) for item in environments}
    lowest = min((pk for pk in first.values() if pk is not None), default=0)
    # Related rows are not joined: PostgreSQL expects one response of a run that has just begun, joins all that there
    # are, and sorts them for one page. That took 27 ms for 3,000 responses.
    case_name = Case.objects.filter(pk=OuterRef("case")).order_by().values("external_id")
    model_label = RunModel.objects.filter(pk=OuterRef("run_model")).order_by().values("label")
    return (
        Response.objects.filter(run_environment__in=list(first), id__gte=lowest)
        .defer(*DEFERRED_FIELDS)
        .annotate(case_name=Subquery(case_name), model_label=Subquery(model_label))
        .order_by("id")
    )


def set_environments(rows: Iterable[Response], environments: Iterable[RunEnvironment]) -> None:
    """Set the environment of each of *rows*, which are responses of *environments*, without a query."""
    by_id = {item.pk: item for item in environments}
    for row in rows:
        row.run_environment = by_id[row.run_environment_id]


def filter_responses(
    user: User | AnonymousUser,
    run: Run,
    environments: Collection[RunEnvironment],
    filters: ResponseFilters,
    status: str = "",
) -> QuerySet[Response]:
    """Return the responses of *run* that match all *filters* and have *status*, if it is given.

    environments: those of `list_environments`.
    """
    rows = list_responses(environments)
    if status:
        rows = rows.filter(status=status)
    if filters.environment:
        rows = rows.filter(run_environment__version__environment__slug=filters.environment)
    if filters.model:
        rows = rows.filter(run_model__label=filters.model)
    if filters.flag == COUNTED:
        rows = rows.exclude(case__in=[case for _, cases in list_quarantined(run) for case in cases])
    regex = pattern_regex(filters.reason) if filters.reason else ""
    return responses_matching(
        rows,
        versions=[item.version_id for item in environments],
        q=filters.q,
        flag=filters.flag,
        reason=regex,
        withheld=withheld_environments(user, run),
    )


def get_visible_response(user: User | AnonymousUser, pk: int) -> Response:
    """Return response *pk*. Raises Http404 if it does not exist or *user* may not see its run."""
    found = (
        Response.objects.select_related("run_model", "case", "run_environment__version__environment")
        .filter(pk=pk)
        .first()
    )
    run = None if found is None else _find_visible_run(user, found.run_environment.run_id)
    if found is None or run is None:
        raise Http404(
            f"There is no response {pk}, or its run was deleted, or it or an environment of it is private to others."
        )
    found.run_environment.run = run
    return found


OTHER_RUNS = 10  # responses of other runs that the page of a response lists


def list_responses_of_other_runs(user: User | AnonymousUser, response: Response) -> list[Response]:
    """Return the latest responses of earlier runs to the same case, latest first; at most OTHER_RUNS."""
    visible = visible_runs(user).order_by().filter(pk=OuterRef("run_environment__run_id"))
    case = response.case
    same = Case.objects.filter(version__environment_id=case.version.environment_id, external_id=case.external_id)
    rows = (
        # With the ids as literals, PostgreSQL uses the index of the case. With a subquery it reads all earlier
        # responses in the order of their ids: 2 to 4 s among a million.
        Response.objects.filter(Exists(visible), case__in=list(same.values_list("pk", flat=True)), pk__lt=response.pk)
        .exclude(run_environment__run_id=response.run_environment.run_id)
        .select_related("run_model", "run_environment__version__environment", "case")
        .defer(*DEFERRED_FIELDS, "run_environment__version__manifest", "run_environment__version__readme", "case__data")
        .order_by("-id")
    )
    return list(rows[:OTHER_RUNS])


def list_quarantined(run: Run) -> list[tuple[RunEnvironment, frozenset[int]]]:
    """Return the environments of *run* that have quarantined cases, each with the ids of these cases."""
    accepted = CaseDefect.objects.filter(status=CaseDefect.Status.ACCEPTED)
    with_defects = run.environments.filter(version__in=accepted.values("case__version"))
    found = [(item, quarantined_cases(run, item)) for item in with_defects.select_related("version__environment")]
    return [(environment, cases) for environment, cases in found if cases]


def hide_withheld_reasons(user: User | AnonymousUser, rows: list[Response]) -> None:
    """Replace the reasons that *user* may not read, in memory only."""
    for row in rows:
        if withholds_reasons(user, row):
            row.reason = reason_without_target(row.reason, row.status, row.error_kind)
