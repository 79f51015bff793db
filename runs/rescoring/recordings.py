"""Folders with the recordings of the responses that a run scores again, in the data folder."""

import re
import shutil
import uuid
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast

from runs.models import Run


def new_folder(run: Run) -> Path:
    """Return the path of a new folder for recordings of *run*; only its parent is created."""
    folder = _root() / f"run-{run.pk}-{uuid.uuid4().hex[:8]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def remove_recordings(run: Run) -> None:
    """Delete the recordings that *run* replays once the transaction is committed, unless another run needs them."""
    for folder in {folder for model in run.config.get("models", []) if (folder := _folder(model))}:
        others = Run.objects.exclude(pk=run.pk).annotate(text=Cast("config", TextField()))
        if not others.filter(text__contains=f"/{folder.name}/").exists():
            transaction.on_commit(partial(shutil.rmtree, folder, ignore_errors=True))


def _folder(model: dict[str, object]) -> Path | None:
    """Return the folder of recordings that *model*, of a stored config, replays; None if it replays none of these."""
    folder = Path(str(model.get("responses", ""))).parent
    return folder if folder.parent == _root() and re.fullmatch(r"run-\d+-[0-9a-f]{8}", folder.name) else None


def _root() -> Path:
    return Path(settings.VAR_DIR) / "rescored"
