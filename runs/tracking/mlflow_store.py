"""Opening MLflow's store. Imports mlflow, so only the tracking process uses it."""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import mlflow
from mlflow import MlflowClient


def open_store() -> None:
    """Create a new local store, or connect to the existing one."""
    try:
        with _store_lock():
            MlflowClient().search_experiments(max_results=1)
    except Exception as error:  # a job that comes later succeeds, or answers with the error
        sys.stderr.write(f"not reachable yet: {error}\n")


@contextmanager
def _store_lock() -> Iterator[None]:
    """Keep two runs that start at the same time from both creating a local SQLite store."""
    address = urlsplit(mlflow.get_tracking_uri())
    if address.scheme != "sqlite":
        yield
        return
    path = Path(unquote(address.path).removeprefix("/") or "mlflow")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
