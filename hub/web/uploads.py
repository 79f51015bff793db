"""Bundles uploaded by page or REST: validated, stored, and queued for the gates."""

from typing import IO

from django.contrib.auth.models import User

from hub.bundles.loader import Bundle, open_archive
from hub.common.problems import Problem
from hub.gates.queue import dispatch_gates
from hub.manifest.problems import MANIFEST, BundleError
from hub.models import Environment, EnvironmentVersion, Team
from hub.selectors import find_by_digest
from hub.services import EnvironmentRefused, import_bundle
from hub.teams.choice import choose_team


def receive_bundle(*, file: IO[bytes], user: User, team: str = "") -> tuple[EnvironmentVersion, bool]:
    """Store the .zip *file* for *user* and close it; return the version and whether it is new.

    *team* is the slug of the team that owns a new environment, as in `choose_team`.

    The version can be used at once. A worker runs its gates, which must pass before it can be published.

    Raises BundleError with every problem, TeamError, QuotaExceeded, ArchiveUnavailable and SandboxUnavailable.
    """
    with open_archive(file) as bundle:
        known = find_by_digest(bundle.digest) is not None
        try:
            version = import_bundle(bundle=bundle, owner=user, team=_team_of_new(bundle, user, team))
        except EnvironmentRefused as error:
            raise BundleError(Problem(str(error), "slug", file=MANIFEST)) from None
    if version.certificate is None:
        dispatch_gates(version=version)
    return version, not known


def _team_of_new(bundle: Bundle, user: User, team: str) -> Team | None:
    """Return the team that will own the environment of *bundle*; None if the environment exists, and keeps its own.

    Raises TeamError, also if the environment exists and *team* is none of the teams of *user*.
    """
    try:
        slug = bundle.manifest.slug
    except BundleError:  # `import_bundle` reports the problems of all files
        return None
    exists = Environment.objects.filter(slug=slug).exists()
    chosen = choose_team(user, team) if team or not exists else None
    return None if exists else chosen
