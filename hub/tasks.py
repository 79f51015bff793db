"""Celery task that runs the gates of waiting versions."""

import logging

from celery import shared_task

from hub.bundles.stored import open_stored_bundle
from hub.common.leases import end_owner, new_owner
from hub.common.worker.shutdown import is_shutting_down
from hub.gates.queue import GATES, next_gate_request, postpone_gate_request, renewed_lease
from hub.gates.runner import run_gates
from hub.models import EnvironmentVersion, GateRequest
from hub.services import set_certificate
from sandbox.client.settings import get_pool_options
from sandbox.client.shared_pools import get_shared_pool
from sandbox.errors import InfrastructureFailed, SandboxUnavailable

logger = logging.getLogger(__name__)


@shared_task(name=GATES, ignore_result=True)
def run_waiting_gates() -> None:
    """Run the gates of all versions that wait for them, one after the other, and store the certificates."""
    owner = new_owner()
    try:
        while not is_shutting_down() and (request := next_gate_request(owner=owner)) is not None:
            _run_gates_of(request, owner)
    finally:
        end_owner(owner)


def _run_gates_of(request: GateRequest, owner: str) -> None:
    version = request.version
    try:
        if version.certificate is None:
            with renewed_lease(request, owner):
                _certify(version)
    except SandboxUnavailable as error:
        logger.error("the gates of %s cannot be run here: %s", version, error)
        postpone_gate_request(request, problem=str(error), counts=False)
    except InfrastructureFailed as error:  # the bundle may be at fault: its code may end the engine every time
        logger.error("the sandbox failed during the gates of %s: %s", version, error)
        postpone_gate_request(request, problem=str(error), counts=True)
    except Exception as error:  # stored as the problem of this version; the worker continues with the next
        logger.exception("the gates of %s", version)
        postpone_gate_request(request, problem=f"{type(error).__name__}: {error}", counts=True)
    else:
        request.delete()


def _certify(version: EnvironmentVersion) -> None:
    with open_stored_bundle(version) as bundle:
        pool = get_shared_pool(get_pool_options()) if bundle.compile().needs_sandbox else None
        certificate = run_gates(bundle, pool=pool)
    set_certificate(version=version, certificate=certificate)
