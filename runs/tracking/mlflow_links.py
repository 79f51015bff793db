"""Links to the pages of runs in MLflow."""

from urllib.parse import quote

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User

from runs.models import Response, Run
from runs.selectors import may_see_log


def mlflow_run_id(user: User | AnonymousUser, run: Run) -> str:
    """Return the id of *run* in MLflow; empty if the run is not logged, or if *user* may not see its log."""
    parent: str = run.tracking.get("parent") or ""
    return parent if parent and may_see_log(user, run) else ""


def mlflow_url(user: User | AnonymousUser, run: Run) -> str:
    """Return the URL of *run* in MLflow.

    It is empty if the run is not logged, if MLflow has no address that a browser can open, or if *user* may not see
    the targets and reasons that are logged there.
    """
    return _page(user, run, run.tracking.get("parent"))


def mlflow_url_of(user: User | AnonymousUser, response: Response) -> str:
    """Return the URL of the nested MLflow run for the environment and model of *response*; empty as in `mlflow_url`."""
    run = response.run_environment.run
    cell = f"{response.run_environment.version} / {response.run_model.label}"
    return _page(user, run, (run.tracking.get("cells") or {}).get(cell))


def _page(user: User | AnonymousUser, run: Run, key: str | None) -> str:
    server, experiment = settings.MLFLOW_URL or run.tracking.get("uri", ""), run.tracking.get("experiment_id")
    if not (key and experiment and server.startswith(("http://", "https://"))):
        return ""
    if not may_see_log(user, run):
        return ""
    return f"{server.rstrip('/')}/#/experiments/{quote(str(experiment))}/runs/{quote(key)}"
