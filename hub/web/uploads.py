"""A bundle that somebody sends, by the upload page or by REST: checked, stored and put before the gates, or refused."""

from typing import IO

from django.contrib.auth.models import User

from hub.bundles.loader import open_archive
from hub.common.problems import Problem
from hub.gates.queue import dispatch_gates
from hub.manifest.problems import MANIFEST, BundleError
from hub.models import EnvironmentVersion
from hub.services import EnvironmentRefused, import_bundle


def bundle_receive(*, file: IO[bytes], user: User) -> tuple[EnvironmentVersion, bool]:
    """Store the .zip *file* as *user*'s; whether it was new. Raises BundleError, with every problem. *file* is closed.

    It can be used at once; a worker runs its gates, which it has to pass before it can be published.
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
