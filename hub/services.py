"""Services of environments: import and export of bundles, publishing, retiring, teams, reports of wrong cases."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Sum, Value
from django.db.models.functions import Concat
from django.utils import timezone

from hub.bundles.checked import CheckedCase, CheckedCases
from hub.bundles.loader import Bundle, open_bundle
from hub.bundles.stored import archive_size, open_stored_archive, restore_archive, store_archive
from hub.bundles.validation import bundle_problems
from hub.common.errors import UserError
from hub.gates.certificates import failed_gates
from hub.gates.queue import pending_request, why_given_up
from hub.manifest.problems import MANIFEST, BundleError
from hub.manifest.schema import Manifest
from hub.models import Case, CaseDefect, Environment, EnvironmentVersion, Team
from hub.protocols.cases import case_split
from hub.selectors import is_curator, is_newer
from hub.teams.quotas import check_storage, lock_team
from hub.teams.visibility import may_see

BATCH = 500
TEXTS = ("title", "summary", "category", "tags", "license")


class EnvironmentRefused(UserError):
    """An action that is not allowed for this environment or user; the message is a sentence."""


def import_bundle(
    *,
    bundle: Bundle | str | Path,
    cases: CheckedCases | None = None,
    owner: User | None = None,
    team: Team | None = None,
    certificate: Mapping[str, object] | None = None,
    publish: bool = False,
) -> EnvironmentVersion:
    """Store a bundle as a new version; return the existing one if the digest is stored.

    A new environment is private until it is published. A new version of a published environment becomes its latest one
    when it has passed its gates.

    If the archive of the existing version is missing or damaged, it is stored again.

    *cases* are those of the bundle if it was checked before; they are read again if it has changed since. *owner* None
    means the operator at the command line, who may add versions to any environment. *team* owns a new environment; one
    that exists keeps its team. *certificate* is the result of the gates; it is ignored if it is for another digest.
    Raises BundleError with every problem, EnvironmentRefused and QuotaExceeded.
    """
    if not isinstance(bundle, Bundle):
        with open_bundle(bundle) as opened:
            return import_bundle(
                bundle=opened, cases=cases, owner=owner, team=team, certificate=certificate, publish=publish
            )
    try:
        manifest = bundle.manifest
    except BundleError:  # report the problems of all files, not only of the manifest
        raise BundleError(bundle_problems(bundle, on_case=lambda item: None)) from None
    try:
        existing = _find_version(manifest, bundle, owner)
    except BundleError as error:  # a missing file may be the only change
        raise BundleError([*error.problems, *bundle_problems(bundle, on_case=lambda item: None)]) from None
    if existing is None:
        # Reading, rendering and digesting come first, so that the database is locked only while rows are written.
        if cases is None or cases.digest != bundle.digest:
            cases = CheckedCases(bundle)
        archive = store_archive(bundle, lambda size: _check_storage(manifest, team, size))
        with transaction.atomic():
            environment = _locked_environment(manifest, owner, team)
            if environment.team is not None:
                check_storage(lock_team(environment.team), archive_size(archive))
            existing = _find_version(manifest, bundle, owner) or _create_version(
                environment, manifest, bundle, archive, cases
            )
        cases.close()
    else:
        restore_archive(existing, bundle)
    if certificate is not None and certificate.get("digest") == existing.digest:
        set_certificate(version=existing, certificate=certificate)
    if publish:
        if reason := why_version_is_not_publishable(existing):
            raise EnvironmentRefused(reason)
        publish_environment(environment=existing.environment)
    return existing


def _find_version(manifest: Manifest, bundle: Bundle, owner: User | None) -> EnvironmentVersion | None:
    environment = Environment.objects.filter(slug=manifest.slug).first()
    if environment is None:
        return None
    if owner is not None and not _may_add_version(owner, environment):
        raise EnvironmentRefused(
            f"The slug {manifest.slug!r} belongs to someone else; choose another in environment.yaml."
        )
    return find_version_of_bundle(bundle)


def find_version_of_bundle(bundle: Bundle) -> EnvironmentVersion | None:
    """Return the stored version of *bundle*, if any. Raises BundleError if it was stored with different content."""
    manifest = bundle.manifest
    version = EnvironmentVersion.objects.filter(environment__slug=manifest.slug, version=manifest.version).first()
    if version is not None and version.digest != bundle.digest:
        raise BundleError(
            bundle.problem(
                ["version"],
                f"{manifest.slug} {manifest.version} is already stored with different content.",
                f"Raise `version`, for example to {_next_patch(manifest.version)}.",
            )
        )
    return version


def _may_add_version(user: User, environment: Environment) -> bool:
    return may_see(user, environment) and (environment.owner_id == user.pk or is_curator(user))


def _next_patch(version: str) -> str:
    major, minor, patch = version.partition("-")[0].split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def _locked_environment(manifest: Manifest, owner: User | None, team: Team | None) -> Environment:
    """Return the environment's row, created if missing and locked until the transaction ends."""
    texts = {name: getattr(manifest, name) for name in TEXTS}
    environment, _ = Environment.objects.get_or_create(
        slug=manifest.slug, defaults={**texts, "owner": owner, "team": team, "held_out": manifest.held_out}
    )
    return Environment.objects.select_for_update().get(pk=environment.pk)


def _check_storage(manifest: Manifest, team: Team | None, size: int) -> None:
    """Raise QuotaExceeded if an archive of *size* bytes exceeds the quota of the team of the environment."""
    environment = Environment.objects.filter(slug=manifest.slug).select_related("team").first()
    owner = team if environment is None else environment.team
    if owner is not None:
        check_storage(owner, size)


def _create_version(
    environment: Environment, manifest: Manifest, bundle: Bundle, archive: str, cases: CheckedCases
) -> EnvironmentVersion:
    version = EnvironmentVersion.objects.create(
        environment=environment,
        version=manifest.version,
        digest=bundle.digest,
        manifest=bundle.yaml.value,
        readme=bundle.readme,
        archive=archive,
        archive_bytes=archive_size(archive),
        case_count=cases.count,
    )
    _create_cases(version, cases, _held_out_splits(environment))
    environment.held_out = environment.held_out or manifest.held_out  # can only be tightened
    environment.partly_held_out = environment.partly_held_out or bool(manifest.held_out_splits)
    environment.save()
    _make_latest(environment, version)
    return version


def _make_latest(environment: Environment, version: EnvironmentVersion) -> None:
    """Make *version* the latest one if it is newer. Unless the environment is private, it must have passed its gates.

    A retired environment is visible to all, and publishing it again must not depend on a version stored meanwhile.
    """
    latest = environment.latest
    if not is_newer(version, latest):
        return
    passed = version.certificate is not None and not failed_gates(version.certificate)
    if environment.visibility != Environment.Visibility.PRIVATE and not passed:
        return
    _update_texts(environment, Manifest.model_validate(version.manifest), latest)
    environment.latest = version
    environment.save()


def _held_out_splits(environment: Environment) -> set[str]:
    """Return the splits that any stored version of *environment* holds out: a later version cannot open them."""
    listed = environment.versions.values_list("manifest__held_out_splits", flat=True)
    return {split for splits in listed for split in splits or ()}


def _create_cases(version: EnvironmentVersion, cases: CheckedCases, held_out_splits: set[str]) -> None:
    rows = (_case(version, case, held_out_splits) for case in cases)
    while batch := list(itertools.islice(rows, BATCH)):
        Case.objects.bulk_create(batch)


def _case(version: EnvironmentVersion, case: CheckedCase, held_out_splits: set[str]) -> Case:
    held_out = case_split(case.data) in held_out_splits
    return Case(version=version, held_out=held_out, **case._asdict())


def _update_texts(environment: Environment, manifest: Manifest, before: EnvironmentVersion | None) -> None:
    """Copy the texts of a newer version, except those that a curator has changed."""
    previous = Manifest.model_validate(before.manifest) if before else manifest
    for name in TEXTS:
        if getattr(environment, name) == getattr(previous, name):
            setattr(environment, name, getattr(manifest, name))


def export_bundle(*, version: EnvironmentVersion, file: IO[bytes]) -> None:
    """Copy the version's archive into *file*; every export of the same content is identical."""
    with open_stored_archive(version) as source:
        while chunk := source.read(1 << 20):
            file.write(chunk)


# ---- actions of curators ---------------------------------------------------------------------------------------------


def set_certificate(*, version: EnvironmentVersion, certificate: Mapping[str, object]) -> None:
    """Store the result of the gates. A new version that passed becomes the latest one of its environment.

    Raises EnvironmentRefused if the certificate has another digest.
    """
    if certificate.get("digest") != version.digest:
        raise EnvironmentRefused(f"The certificate has another digest than {version}; run the gates of this version.")
    if version.certificate != certificate:
        version.certificate = certificate
        with transaction.atomic():
            version.save(update_fields=["certificate"])
            _make_latest(Environment.objects.select_for_update().get(pk=version.environment_id), version)


def why_not_publishable(environment: Environment) -> str:
    """Return why the environment cannot be published; "" if its latest version has passed its gates."""
    if environment.latest is None:
        return f"{environment.slug} cannot be published: it has no version."
    return why_version_is_not_publishable(environment.latest)


def why_version_is_not_publishable(version: EnvironmentVersion) -> str:
    """Return why *version* cannot be shown to everybody; "" if it has passed its gates."""
    request = pending_request(version)
    if request is not None:
        if reason := why_given_up(request):
            return f"{version} cannot be published: its gates failed to finish: {reason.rstrip('.')}."
        return f"{version} cannot be published yet: a worker is running its gates, or will do so soon."
    if version.certificate is None:
        return f"{version} cannot be published: its gates have not been run. Run them on the page of its certificate."
    failed = failed_gates(version.certificate)
    return f"{version} cannot be published: it failed {', '.join(failed)}." if failed else ""


def publish_environment(*, environment: Environment) -> None:
    """Publish the environment. Raises EnvironmentRefused if its latest version has no certificate or failed a gate."""
    if reason := why_not_publishable(environment):
        raise EnvironmentRefused(reason)
    _set_visibility(environment, Environment.Visibility.PUBLISHED)


def retire_environment(*, environment: Environment) -> None:
    """Remove the environment from the catalogue; runs that used it keep it.

    Raises EnvironmentRefused if it is not published: retired environments are visible to all, private ones are not.
    """
    if environment.visibility != Environment.Visibility.PUBLISHED:
        raise EnvironmentRefused(
            f"{environment.slug} is {environment.visibility}; only a published environment can be retired."
        )
    _set_visibility(environment, Environment.Visibility.RETIRED)


def _set_visibility(environment: Environment, visibility: Environment.Visibility) -> None:
    if environment.visibility != visibility:
        environment.visibility = visibility
        environment.save(update_fields=["visibility", "updated_at"])


def move_environment(*, environment: Environment, team: Team | None) -> None:
    """Make *team* the owner of the environment; None: share it. Only members of that team then see the runs on it.

    Raises QuotaExceeded if the bundles of its versions exceed the storage of *team*.
    """
    if team is not None:
        for version in environment.versions.filter(archive_bytes=None).exclude(archive="").only("archive"):
            EnvironmentVersion.objects.filter(pk=version.pk).update(
                archive_bytes=archive_size(version.archive.name or "")
            )
    with transaction.atomic():
        # First the environment, then the team, as an upload locks them: no version is added until the sizes are added.
        locked = Environment.objects.select_for_update().get(pk=environment.pk)
        if team is not None and team.pk != locked.team_id:
            sizes = environment.versions.aggregate(total=Sum("archive_bytes"))
            check_storage(lock_team(team), sizes["total"] or 0)
        environment.team = team
        environment.save(update_fields=["team", "updated_at"])


def report_defect(*, case: Case, description: str, user: User | None) -> CaseDefect:
    """Report that *case* is wrong. Raises EnvironmentRefused if *user* has an open report on it."""
    if user and CaseDefect.objects.filter(case=case, reported_by=user, status=CaseDefect.Status.OPEN).exists():
        raise EnvironmentRefused("You have already reported this case; a curator has yet to resolve the report.")
    return CaseDefect.objects.create(case=case, description=description, reported_by=user)


def extend_defect(*, defect: CaseDefect, description: str) -> None:
    """Append *description* to an open report, unless the report contains it already."""
    if description not in defect.description:
        extended = Concat("description", Value(f"\n\n{description}"))
        CaseDefect.objects.filter(pk=defect.pk, status=CaseDefect.Status.OPEN).update(description=extended)
        defect.refresh_from_db()


def resolve_defect(*, defect: CaseDefect, accepted: bool, resolution: str, user: User) -> None:
    """Accept the report (later runs exclude the case) or reject it. Raises EnvironmentRefused if it is resolved."""
    changed = CaseDefect.objects.filter(pk=defect.pk, status=CaseDefect.Status.OPEN).update(
        status=CaseDefect.Status.ACCEPTED if accepted else CaseDefect.Status.REJECTED,
        resolution=resolution,
        resolved_by=user,
        resolved_at=timezone.now(),
    )
    if not changed:
        raise EnvironmentRefused("This report is already resolved.")
    defect.refresh_from_db()


def load_catalog(*, folder: Path) -> Iterator[tuple[str, EnvironmentVersion | BundleError | EnvironmentRefused]]:
    """Store new bundles and certificates of *folder*; yield (name, version or error) for each new one.

    Bundles with a certificate are published. Their code is not run. Unchanged bundles are only hashed.
    """
    paths = [path for path in sorted(folder.iterdir()) if (path / MANIFEST).is_file()]
    opened: dict[str, Bundle] = {}
    for path in paths:
        try:
            opened[path.name] = open_bundle(path)
        except BundleError as error:
            yield path.name, error
    digests = [bundle.digest for bundle in opened.values()]
    known = dict(EnvironmentVersion.objects.filter(digest__in=digests).values_list("digest", "certificate"))
    for name, bundle in opened.items():
        certificate = bundle.certificate
        if bundle.digest in known and (certificate is None or known[bundle.digest] is not None):
            continue
        try:
            yield name, import_bundle(bundle=bundle, certificate=certificate, publish=certificate is not None)
        except (BundleError, EnvironmentRefused) as error:
            yield name, error
