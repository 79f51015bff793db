"""Bundles uploaded by page or REST: validated, stored, and queued for the gates."""

from typing import IO

from django.contrib.auth.models import User

from hub.bundles.loader import open_archive
from hub.common.problems import Problem
from hub.gates.queue import dispatch_gates
from hub.manifest.problems import MANIFEST, BundleError
from hub.models import EnvironmentVersion
from hub.services import EnvironmentRefused, import_bundle


def receive_bundle(*, file: IO[bytes], user: User) -> tuple[EnvironmentVersion, bool]:
    """Store the .zip *file* for *user* and close it; return the version and whether it is new.

    The version can be used at once. A worker runs its gates, which must pass before it can be published.

    Raises BundleError with every problem.
    """
    with open_archive(file) as bundle:
        known = EnvironmentVersion.objects.filter(digest=bundle.digest).exists()
        try:
            version = import_bundle(bundle=bundle, owner=user)
        except EnvironmentRefused as error:
            raise BundleError(Problem(str(error), "slug", file=MANIFEST)) from None
    if version.certificate is None:
        dispatch_gates(version=version)
    return version, not known
