"""Where a browser finds what was logged of a run in MLflow."""

from urllib.parse import quote

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User

from runs.models import Response, Run
from runs.selectors import withheld_environments


def mlflow_url(user: User | AnonymousUser, run: Run) -> str:
    """The page of *run* in MLflow; empty where it was not logged, or no browser can open MLflow.

    Empty, too, where *user* may not see targets and reasons, which are logged there.
    """
    return _page(user, run, run.tracking.get("parent"))


def mlflow_url_of(user: User | AnonymousUser, response: Response) -> str:
    """The page of the response's environment and model, a run within its run; else as `mlflow_url`."""
    run = response.run_environment.run
    cell = f"{response.run_environment.version} / {response.run_model.label}"
    return _page(user, run, (run.tracking.get("cells") or {}).get(cell))


def _page(user: User | AnonymousUser, run: Run, key: str | None) -> str:
    server, experiment = settings.MLFLOW_URL or run.tracking.get("uri", ""), run.tracking.get("experiment_id")
    if not (key and experiment and server.startswith(("http://", "https://"))):
        return ""
    if withheld_environments(user, run).exists():
        return ""
    return f"{server.rstrip('/')}/#/experiments/{quote(str(experiment))}/runs/{quote(key)}"
