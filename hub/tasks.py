"""The worker's side of the hub: the gates of a version that was uploaded, so that it can be published."""

import logging

from celery import shared_task

from hub.bundles.gates import gates_run
from hub.bundles.loader import open_archive
from hub.dispatch import GATES
from hub.models import EnvironmentVersion
from hub.services import certificate_set
from sandbox.errors import SandboxUnavailable
from sandbox.pool import shared

logger = logging.getLogger(__name__)


@shared_task(name=GATES, ignore_result=True)
def gates(version_id: int) -> None:
    """Run the gates of a version that has no certificate yet, and keep what they found."""
    version = EnvironmentVersion.objects.select_related("environment").filter(pk=version_id).first()
    if version is None or version.certificate is not None:
        return
    try:
        with open_archive(version.archive.open("rb")) as bundle:
            pool = shared() if bundle.compile().needs_sandbox else None
            certificate = gates_run(bundle, pool=pool)
    except SandboxUnavailable as error:
        logger.error("the gates of %s cannot be run here: %s", version, error)
        return
    certificate_set(version=version, certificate=certificate)
