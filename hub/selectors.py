"""Queries on environments: versions by name, ids of cases, compiled environments, visibility."""

from functools import lru_cache

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet

from hub.bundles.stored import open_stored_bundle
from hub.common import wording
from hub.common.errors import NotFound
from hub.environments.compiled import CaseError, CompiledEnvironment
from hub.harnesses.base import HarnessError
from hub.harnesses.registry import HARNESSES
from hub.manifest.schema import Manifest, version_key
from hub.models import Case, CaseDefect, Environment, EnvironmentVersion
from hub.protocols.cases import CaseData
from hub.protocols.messages import Tool
from hub.teams.per_user import read_once
from hub.teams.visibility import visible_to

CURATE = "hub.curate_environment"
VIEW_HELD_OUT = "hub.view_held_out"

_FEW = 100


class VersionNotFound(NotFound):
    """No environment or version has that name; the message is a sentence."""


def get_version(
    slug: str, version: str | None = None, *, among: QuerySet[Environment] | None = None
) -> EnvironmentVersion:
    """Return the version of *slug*, by default the latest. Raises VersionNotFound.

    among: the environments that may be found and named in messages, by default all.
    """
    name, _, given = slug.partition("@")
    version = version or given or None
    environments = Environment.objects.all() if among is None else among
    environment = environments.filter(slug=name).select_related("latest__environment").first()
    if environment is None:
        known = wording.suggest(name, environments.order_by("slug").values_list("slug", flat=True))
        raise VersionNotFound(f"There is no environment {name!r}; {known or 'none is loaded yet'}")
    if version is None:
        if environment.latest is None:
            raise VersionNotFound(f"The environment {name!r} has no version yet")
        return environment.latest
    found = environment.versions.select_related("environment").filter(version=version).first()
    if found is None:
        known = ", ".join(environment.versions.values_list("version", flat=True)[:20])
        raise VersionNotFound(f"The environment {name!r} has no version {version}; it has {known or 'none'}")
    return found


def compile_version(version: EnvironmentVersion) -> CompiledEnvironment:
    """Return the compiled environment of *version*, cached since versions never change. Raises CompileError."""
    return _compiled(version.digest)


def list_forgeable_rules(version: EnvironmentVersion) -> list[str]:
    """Return the rules of *version* whose result a model can forge (`trust: in_process`); empty if it is not known."""
    try:
        return compile_version(version).forgeable_rules
    except ValueError:  # an old manifest, or an archive that cannot be read; pages of the version work without it
        return []


def get_offered_tools(version: EnvironmentVersion, case: Case) -> list[Tool] | None:
    """Return the tools that models are offered in *case* of *version*; None if only an episode can determine them.

    Raises ArchiveUnavailable and CompileError.
    """
    harness = HARNESSES.get(version.manifest.get("harness", {}).get("type", ""))
    if harness is None or not harness.offers_tools:
        return []
    try:
        return compile_version(version).tools_of(CaseData.from_json(case.data))
    except (CaseError, HarnessError):
        return None


@lru_cache(maxsize=64)
def _compiled(digest: str) -> CompiledEnvironment:
    version = EnvironmentVersion.objects.filter(digest=digest)[0]
    manifest = Manifest.model_validate(version.manifest)
    return CompiledEnvironment(manifest, _code(version, manifest))


def _code(version: EnvironmentVersion, manifest: Manifest) -> dict[str, bytes]:
    """Return the code files of the stored archive. Raises ArchiveUnavailable."""
    with open_stored_bundle(version) as bundle:
        return bundle.code(manifest)


def find_by_digest(digest: str) -> EnvironmentVersion | None:
    """Return the version whose bundle has *digest*, if it is stored."""
    return EnvironmentVersion.objects.filter(digest=digest).first()


def is_newer(version: EnvironmentVersion, latest: EnvironmentVersion | None) -> bool:
    """Return whether the number of *version* is higher than that of *latest*, or there is no latest version."""
    return latest is None or version_key(version.version) > version_key(latest.version)


def list_case_ids(version: EnvironmentVersion) -> list[str]:
    """Return the ids of all cases, in order of position."""
    return list(Case.objects.filter(version=version).order_by("position").values_list("external_id", flat=True))


def list_open_defects(user: User | AnonymousUser, version: EnvironmentVersion | None = None) -> QuerySet[CaseDefect]:
    """Return open reports of wrong cases, of *version* or of all versions that *user* may see."""
    found = CaseDefect.objects.filter(status=CaseDefect.Status.OPEN)
    if version is not None:
        return found.filter(case__version=version)
    return found.exclude(case__version__environment__in=list_foreign_environments(user).values("pk"))


def is_curator(user: User | AnonymousUser | None) -> bool:
    """Return whether *user* may upload, publish and retire environments, and see private ones."""
    return bool(user and user.has_perm(CURATE))


def list_visible_environments(user: User | AnonymousUser) -> QuerySet[Environment]:
    """Return the environments visible to *user*: published, retired (old runs link to them) and their own.

    Curators also see those that are private to others. Nobody sees those of other teams.
    """
    return Environment.objects.select_related("latest", "team__group").filter(_visible_to(user))


def list_foreign_environments(user: User | AnonymousUser) -> QuerySet[Environment]:
    """Return the environments that are hidden from *user*: private to other users, or owned by other teams."""
    condition = _visible_to(user)
    # Without a condition, `exclude` would return everything.
    return Environment.objects.exclude(condition) if condition else Environment.objects.none()


def foreign_environments(user: User | AnonymousUser) -> list[int] | QuerySet[Environment, int]:
    """Return the ids of the environments that are hidden from *user*, for a condition `__in`.

    Up to _FEW are read once for each instance of a user: usually there are none, and a subquery costs three times as
    much to build and to plan as this query. More are left to a subquery.
    """
    known = _few_foreign_ids(user)
    return known if len(known) <= _FEW else _foreign_ids(user)


@read_once
def _few_foreign_ids(user: User | AnonymousUser) -> list[int]:
    return list(_foreign_ids(user)[: _FEW + 1])


def _foreign_ids(user: User | AnonymousUser) -> QuerySet[Environment, int]:
    return list_foreign_environments(user).order_by().values_list("pk", flat=True)


def _visible_to(user: User | AnonymousUser) -> Q:
    if is_curator(user):
        return visible_to(user)
    seen = Q(visibility__in=[Environment.Visibility.PUBLISHED, Environment.Visibility.RETIRED])
    return visible_to(user) & (seen | Q(owner_id=user.pk) if user.pk else seen)


def may_see_content(user: User | AnonymousUser, environment: Environment) -> bool:
    """Return whether *user*, who may see *environment*, may see its cases, targets, bundle, manifest and reasons.

    If it or one of its splits is held out, only its owner, curators and users with VIEW_HELD_OUT may.
    """
    owner = user.pk is not None and environment.owner_id == user.pk
    return (
        not (environment.held_out or environment.partly_held_out)
        or owner
        or is_curator(user)
        or user.has_perm(VIEW_HELD_OUT)
    )


def list_withheld_environments(user: User | AnonymousUser) -> QuerySet[Environment]:
    """Return the environments whose content `may_see_content` denies to *user*."""
    held_out = Environment.objects.filter(Q(held_out=True) | Q(partly_held_out=True))
    if is_curator(user) or user.has_perm(VIEW_HELD_OUT):
        return held_out.none()
    return held_out.exclude(owner_id=user.pk) if user.pk else held_out
