"""A bundle that somebody sends, by the upload page or by REST: checked and stored, or refused with every problem."""

from typing import IO

from django.contrib.auth.models import User

from hub.bundles.loader import open_archive
from hub.bundles.problems import BundleError, Problem
from hub.models import EnvironmentVersion
from hub.services import EnvironmentRefused, bundle_import


def bundle_receive(*, file: IO[bytes], user: User) -> tuple[EnvironmentVersion, bool]:
    """Store the .zip *file* as *user*'s; whether it was new. Raises BundleError. *file* is closed."""
    with open_archive(file) as bundle:
        known = EnvironmentVersion.objects.filter(digest=bundle.digest).exists()
        try:
            return bundle_import(bundle=bundle, owner=user), not known
        except EnvironmentRefused as error:
            raise BundleError(Problem(message=str(error), key="slug")) from None
