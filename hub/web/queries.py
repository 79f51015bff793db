"""Queries of the hub's pages and REST: filtered environments, facets, cases with a preview of their input."""

from collections import Counter

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Exists, Expression, F, JSONField, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Coalesce, Left, Lower
from django.http import Http404

from hub.common.fields import json_text
from hub.common.wording import unknown_name
from hub.models import Case, CaseDefect, Environment, EnvironmentVersion, Team
from hub.selectors import list_visible_environments, may_see_content
from hub.teams.membership import choose_target
from hub.teams.visibility import owned_by

# Sortable columns: name in `?sort=` -> field of the rows.
ENVIRONMENT_COLUMNS = {
    "environment": "title_key",
    "category": "category",
    "harness": "harness",
    "cases": "latest__case_count",
    "changed": "updated_at",
}
CASE_COLUMNS = {"case": "external_id"}

DEFAULT_HARNESS = "single_turn"  # of a manifest that names none
PREVIEW = 240  # characters of a case's input and target in a list


def check_environment(user: User | AnonymousUser, slug: str) -> str:
    """Return *slug*, the value of a filter. Raises ValidationError if it is of no environment that *user* may see."""
    visible = list_visible_environments(user)
    if slug and not visible.filter(slug=slug).exists():
        known = visible.order_by("slug").values_list("slug", flat=True)
        raise ValidationError(unknown_name("environment", slug, known, none="none is loaded yet"))
    return slug


def filter_environments(
    user: User | AnonymousUser,
    *,
    q: str = "",
    category: str = "",
    harness: str = "",
    tag: str = "",
    state: str = "",
    team: str = "",
) -> QuerySet[Environment]:
    """Return the matching environments that *user* may see; retired ones only if *state* is retired."""
    found = list_visible_environments(user).filter(owned_by(team), latest__isnull=False)
    found = found.annotate(title_key=Lower("title"))
    found = found.filter(visibility=state) if state else found.exclude(visibility=Environment.Visibility.RETIRED)
    for word in q.split()[:8]:
        found = found.filter(Q(title__icontains=word) | Q(summary__icontains=word) | Q(slug__icontains=word))
    if category:
        found = found.filter(category=category)
    if harness:
        found = found.alias(harness_type=_harness()).filter(harness_type=harness)
    if tag:
        # As text, because SQLite cannot query the items of a JSON list. Tags are slugs, so nothing needs escaping.
        found = found.annotate(tag_text=Cast("tags", TextField())).filter(tag_text__contains=f'"{tag}"')
    return found


def with_harness(environments: QuerySet[Environment]) -> QuerySet[Environment]:
    """Annotate the environments with `harness`, the type of the harness of their latest version."""
    return environments.annotate(harness=_harness())


def _harness() -> Coalesce:
    harness = KeyTransform("harness", Cast("latest__manifest", JSONField()))
    return Coalesce(Cast(KeyTextTransform("type", harness), TextField()), Value(DEFAULT_HARNESS, TextField()))


def facets(user: User | AnonymousUser) -> dict[str, list[tuple[str, int]]]:
    """Return the number of environments in use by `categories`, `harnesses` and `tags`, each a list of (name, n)."""
    categories: Counter[str] = Counter()
    harnesses: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    rows = filter_environments(user).order_by().values_list("category", "tags", _harness())
    for category, given, harness in rows:
        categories[category] += 1
        harnesses[harness] += 1
        tags.update(str(tag) for tag in given)
    by_count = sorted(tags.items(), key=lambda item: (-item[1], item[0]))
    return {"categories": sorted(categories.items()), "harnesses": sorted(harnesses.items()), "tags": by_count}


def get_visible_environment(user: User | AnonymousUser, slug: str) -> Environment:
    """Return the environment *slug*. Raises Http404 if it does not exist or *user* may not see it."""
    found = list_visible_environments(user).filter(slug=slug).first()
    if found is None:
        raise Http404(f"There is no environment {slug!r}, or it is private to somebody else.")
    return found


def find_target(user: User, environment: Environment, slug: str) -> Team | None:
    """Return the team to which *user* may move *environment*; None: shared. Raises PermissionDenied and TeamError."""
    return choose_target(user, environment, slug, creator_id=environment.owner_id, what="an environment")


def get_environment_with_content(user: User | AnonymousUser, slug: str) -> Environment:
    """Return the environment for showing its cases or bundle. Raises Http404; PermissionDenied if they are held out."""
    found = get_visible_environment(user, slug)
    if not may_see_content(user, found):
        extent = "" if found.held_out else " in part"
        raise PermissionDenied(
            f"{slug} is held out{extent}: its cases, targets and bundle are for its owner and curators. "
            "The permission hub.view_held_out gives access."
        )
    return found


def visible_cases(user: User | AnonymousUser, slug: str, version: str | None, q: str = "") -> QuerySet[Case]:
    """Return the cases of a version that *user* may see, as `list_cases` does: all, or those outside held-out splits.

    Raises Http404; PermissionDenied if the whole environment is held out.
    """
    found = get_visible_environment(user, slug)
    if found.held_out:
        get_environment_with_content(user, slug)
    rows = list_cases(get_version_or_404(found, version), q)
    return rows if may_see_content(user, found) else rows.filter(held_out=False)


def get_version_or_404(environment: Environment, version: str | None) -> EnvironmentVersion:
    """Return the version of *environment*, which the user may see; by default the latest. Raises Http404."""
    found = environment.latest if version is None else environment.versions.filter(version=version).first()
    if found is None:
        raise Http404(f"{environment.slug} has no version {version or 'yet'}.")
    found.environment = environment  # `str(version)` needs no query
    return found


def get_case_or_404(version: EnvironmentVersion, case: str) -> Case:
    """Return the case of *version*, whose content the user may see. Raises Http404."""
    found = Case.objects.filter(version=version, external_id=case).first()
    if found is None:
        raise Http404(f"{version} has no case {case!r}.")
    return found


def list_cases(version: EnvironmentVersion, q: str = "") -> QuerySet[Case]:
    """Return the cases without their data, with `preview`, the start of the input. *q* searches ids and inputs."""
    text = json_text("data", "input")
    rows = Case.objects.filter(version=version).defer("data").annotate(preview=_start(text))
    if q:
        rows = rows.annotate(input_text=Cast(text, TextField()))
        rows = rows.filter(Q(external_id__icontains=q) | Q(input_text__icontains=q))
    return rows


def with_details(cases: QuerySet[Case]) -> QuerySet[Case]:
    """Annotate the cases with `target`, its start, `metadata`, and `reported`: whether a report is open or accepted."""
    reports = CaseDefect.objects.filter(case=OuterRef("pk")).exclude(status=CaseDefect.Status.REJECTED)
    return cases.annotate(
        target=_start(json_text("data", "target")), metadata=F("data__metadata"), reported=Exists(reports)
    )


def _start(text: Expression) -> Left:
    return Left(Cast(text, TextField()), PREVIEW)
